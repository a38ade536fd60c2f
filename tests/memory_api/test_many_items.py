"""What listing and searching costs where there are many items, or large ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from proxy.memory import items
from proxy.memory.items import Change, ItemOwner, Namespace
from proxy.memory_api.items import search as item_search
from proxy.stores.open import Backend
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site
from tests.support.waiting import PATIENCE

ITEMS = "/memory/v1/store/items"
NAMESPACES = "/memory/v1/store/namespaces"
ALICE = digest_of(b"alice")
QUERY = {"query": "boat", "limit": 1000}
COUNT = 50


async def put(store: Backend, namespace: Namespace, key: str, value: bytes = b"{}") -> None:
    change = Change(namespace=namespace, key=key, value=value)
    assert await store.change_items(ItemOwner(ALICE), [change])


async def listed(client: httpx.AsyncClient, path: str, asked: object) -> Any:
    response = await client.post(path, json=asked)
    assert response.status_code == 200, response.text
    return response.json()["data"]


# Namespaces


@pytest.fixture
async def read(store: Backend, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """How many namespaces each reading has brought; they are read five by five."""
    read: list[int] = []
    namespaces = store.namespaces

    async def counted(*asked: Any) -> Any:
        found = await namespaces(*asked)
        read.append(len(found))
        return found

    for n in range(COUNT):
        await put(store, (f"n{n:02d}", "notes"), "k")
    monkeypatch.setattr(items, "NAMESPACES_AT_ONCE", 5)
    monkeypatch.setattr(store, "namespaces", counted)
    yield read


@pytest.mark.parametrize(
    ("asked", "pages"),
    [
        ({"limit": 1}, 1),
        ({"limit": 4}, 1),
        ({"limit": 5}, 2),
        ({"limit": 3, "offset": 10}, 3),
        ({"limit": 5, "max_depth": 1}, 2),
        ({"limit": 5, "prefix": ["n07"]}, 1),
        ({"limit": 5, "prefix": ["*", "notes"]}, 2),
        ({"limit": 1, "suffix": ["none"]}, COUNT // 5 + 1),
    ],
)
async def test_namespaces_are_read_as_far_as_is_asked_for(
    client: httpx.AsyncClient, read: list[int], asked: dict[str, Any], pages: int
) -> None:
    await listed(client, NAMESPACES, asked)
    assert len(read) == pages


async def test_a_list_is_the_same_however_it_is_read(
    client: httpx.AsyncClient, read: list[int]
) -> None:
    await client.put(ITEMS, json={"namespace": ["n00", "notes", "x"], "key": "k", "value": {}})
    every = [[f"n{n:02d}", "notes"] for n in range(COUNT)]
    assert await listed(client, NAMESPACES, {"limit": 7, "offset": 9}) == every[8:15]
    cut = await listed(client, NAMESPACES, {"limit": 7, "offset": 3, "max_depth": 2})
    assert cut == every[3:10]


async def test_one_request_looks_at_so_many_namespaces_and_no_more(
    client: httpx.AsyncClient, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_search, "MAX_SCANNED", 20)
    assert await listed(client, NAMESPACES, {"suffix": ["none"]}) == []
    assert sum(read) == 20
    answer = (await client.post(NAMESPACES, json={"limit": 1000})).json()
    assert (len(answer["data"]), answer["has_more"], answer["next"]) == (20, False, None)


async def test_whether_a_tenant_has_anything_one_namespace_tells(
    site: Site, read: list[int]
) -> None:
    async with site.client(ADMIN_KEY) as admin:
        response = await admin.get(SESSIONS, params={"tenant": ALICE})
    assert response.status_code == 200
    assert read == [1]


# Searches


async def test_a_query_looks_at_so_many_bytes_and_no_more(
    client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_search, "AT_ONCE", 2)
    monkeypatch.setattr(item_search, "MAX_READ_BYTES", 3000)
    for n in range(10):
        await put(store, ("notes",), f"{n}", b'{"text":"boat %b"}' % (b"x" * 1000))
    found = await listed(client, f"{ITEMS}/search", QUERY)
    assert sorted(item["key"] for item in found) == ["0", "1", "2", "3"]
    assert len(await listed(client, f"{ITEMS}/search", {"limit": 1000})) == 10


async def test_a_tenant_has_one_search_that_reads_values_at_a_time(
    site: Site, client: httpx.AsyncClient, store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another tenant, and its own lists, do not wait for it."""
    began, go_on = asyncio.Queue[str](), asyncio.Event()
    read = store.items

    async def held(owner: ItemOwner, *asked: Any) -> Any:
        began.put_nowait(owner.tenant)
        if owner.tenant == ALICE:
            await go_on.wait()
        return await read(owner, *asked)

    body = {"namespace": ["a"], "key": "k", "value": {"text": "boat"}}
    async with site.client("bob") as bob, asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
        for each in (client, bob):
            assert (await each.put(ITEMS, json=body)).status_code == 200
        monkeypatch.setattr(store, "items", held)
        searches = [
            tasks.create_task(listed(client, f"{ITEMS}/search", asked))
            for asked in (QUERY, QUERY, {"filter": {"text": "boat"}})
        ]
        assert await began.get() == ALICE
        assert len(await listed(bob, f"{ITEMS}/search", QUERY)) == 1
        assert await began.get() != ALICE and began.empty()
        plain = tasks.create_task(listed(client, f"{ITEMS}/search", {}))
        assert await began.get() == ALICE and began.empty()
        go_on.set()
    assert [len(task.result()) for task in (*searches, plain)] == [1, 1, 1, 1]
