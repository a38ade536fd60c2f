"""Lists in Redis of which most has expired: the server removes sessions, and not their names."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import newest_session
from proxy.stores.open import Backend
from proxy.stores.redis import lists
from proxy.stores.redis.base import list_keys
from proxy.stores.redis.store import RedisStore
from tests.support.processes.redis import Server
from tests.support.store.commits import chat

TENANT = "tenant"
MANY = 700


@pytest.fixture
def url(server: Server) -> str:
    return server.url


@pytest.fixture(params=[None, "kai"])
def user(request: pytest.FixtureRequest) -> str | None:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
async def listed(store: Backend, server: Server, user: str | None) -> bytes:
    """A list with one session, and in front of it the names of many that have expired."""
    await store.commit(SessionKey(TENANT, "stays"), chat("x1", user="kai"))
    key = list_keys(TENANT, user)[0]
    server.ask("ZADD", key, *(part for n in range(MANY) for part in (9e9 + n, f"dead{n}")))
    return key


def steps_of(store: Backend, monkeypatch: pytest.MonkeyPatch, most: int = 1000) -> list[object]:
    """The steps that are taken from here on; behind so many the server is away."""
    assert isinstance(store, RedisStore)
    taken: list[object] = []
    behind = store._places_after

    async def counted(*args: Any) -> Any:
        taken.append(args)
        if len(taken) > most:
            raise OSError("away")
        return await behind(*args)

    monkeypatch.setattr(store, "_places_after", counted)
    return taken


async def test_a_small_page_passes_many_that_have_expired_in_few_steps(
    store: Backend, server: Server, listed: bytes, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = steps_of(store, monkeypatch)
    page = await store.sessions(TENANT, user, None, 1)
    assert ([session.id for session in page.items], page.after) == (["stays"], None)
    assert len(steps) < 10
    assert server.ask("ZRANGE", listed, 0, -1) == [b"stays"]


async def test_where_a_list_is_cut_off_those_that_were_passed_are_gone(
    store: Backend, server: Server, listed: bytes, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps_of(store, monkeypatch, 2)
    with pytest.raises(StoreError):
        await store.sessions(TENANT, user, None, 1)
    assert server.ask("ZCARD", listed) <= MANY - 500


async def test_a_page_ends_early_where_half_the_time_is_gone_and_the_next_goes_on_behind_it(
    store: Backend, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "TIMEOUT_SHARE", 0.0)
    pages = [await store.sessions(TENANT, user, None, 10)]
    while (after := pages[-1].after) is not None:
        pages.append(await store.sessions(TENANT, user, after, 10))
    assert len(pages) > 1
    assert [session.id for page in pages for session in page.items] == ["stays"]


async def test_the_newest_session_is_found_behind_pages_without_any(
    store: Backend, user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "TIMEOUT_SHARE", 0.0)
    newest = await newest_session(store, TENANT, user)
    assert newest is not None and newest.id == "stays"
