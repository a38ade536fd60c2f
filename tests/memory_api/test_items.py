"""Items over the memory API: put, looked at, searched, listed, deleted."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from proxy.learning.kinds import Kinds
from proxy.memory.items import REQUESTS, Change, ItemOwner, Namespace
from proxy.memory_api.items import search as item_search
from proxy.tenancy import digest_of
from tests.support.memory_api import ADMIN_KEY, SESSIONS, Site, error_of, talk

ITEMS = "/memory/v1/store/items"
SEARCH = f"{ITEMS}/search"
NAMESPACES = "/memory/v1/store/namespaces"
DOCS = ["docs", "red"]
ALICE = digest_of(b"alice")


async def put(
    client: httpx.AsyncClient, namespace: list[str], key: str, value: object, **more: Any
) -> dict[str, Any]:
    body = {"namespace": namespace, "key": key, "value": value, **more}
    response = await client.put(ITEMS, json=body)
    assert response.status_code == 200, response.text
    item: dict[str, Any] = response.json()
    return item


async def get(client: httpx.AsyncClient, namespace: list[str], key: str) -> httpx.Response:
    return await client.get(ITEMS, params={"namespace": namespace, "key": key})


async def search(client: httpx.AsyncClient, *prefix: str, **more: Any) -> list[dict[str, Any]]:
    response = await client.post(SEARCH, json={"namespace_prefix": prefix, **more})
    assert response.status_code == 200, response.text
    assert response.json()["object"] == "list"
    found: list[dict[str, Any]] = response.json()["data"]
    return found


async def keys(client: httpx.AsyncClient, *prefix: str, **more: Any) -> list[str]:
    return [item["key"] for item in await search(client, *prefix, **more)]


async def namespaces(client: httpx.AsyncClient, **more: Any) -> list[list[str]]:
    response = await client.post(NAMESPACES, json=more)
    assert response.status_code == 200, response.text
    found: list[list[str]] = response.json()["data"]
    return found


async def learned(site: Site, namespace: Namespace) -> None:
    """What only the proxy itself puts."""
    user = namespace[1] if namespace[0] == "users" else ""
    change = Change(namespace=namespace, key="k", value=b'{"text": "Kai sails."}')
    assert await site.store.change_items(ItemOwner(ALICE, user), [change])


# One item


async def test_an_item_is_put_read_put_again_and_deleted(client: httpx.AsyncClient) -> None:
    before = time.time()
    item = await put(client, DOCS, "k", {"text": "ä\U0001f600", "n": [1, None]})
    assert before <= item["created_at"] == item["updated_at"] <= time.time()
    assert item == {
        "object": "item",
        "namespace": DOCS,
        "key": "k",
        "value": {"text": "ä\U0001f600", "n": [1, None]},
        "version": 1,
        "created_at": item["created_at"],
        "updated_at": item["updated_at"],
        "expires_at": None,
    }
    response = await get(client, DOCS, "k")
    assert (response.status_code, response.json()) == (200, item)
    assert response.headers["cache-control"] == "no-store"
    again = await put(client, DOCS, "k", {})
    assert (again["version"], again["value"]) == (2, {})
    assert again["created_at"] == item["created_at"] <= again["updated_at"]
    place = {"namespace": DOCS, "key": "k"}
    response = await client.request("DELETE", ITEMS, json=place)
    assert response.status_code == 200
    assert response.json() == {"object": "item.deleted", **place, "deleted": True}
    for response in (
        await get(client, DOCS, "k"),
        await client.request("DELETE", ITEMS, json=place),
        await client.delete(ITEMS, params=place),
    ):
        assert response.status_code == 404
        assert error_of(response)["code"] == "item_not_found"


async def test_an_item_may_be_deleted_by_query(client: httpx.AsyncClient) -> None:
    await put(client, DOCS, "a b/ä", {})
    response = await client.delete(ITEMS, params={"namespace": DOCS, "key": "a b/ä"})
    assert response.status_code == 200 and response.json()["key"] == "a b/ä"
    assert (await get(client, DOCS, "a b/ä")).status_code == 404


async def test_a_value_is_kept_as_it_came(client: httpx.AsyncClient) -> None:
    body = b'{"namespace": ["a"], "key": "k", "value": {"b": 1.0, "a": "\\ud83d", "b": 1e2}}'
    response = await client.put(ITEMS, content=body)
    assert response.status_code == 200
    assert b'"value":{"b": 1.0, "a": "\\ud83d", "b": 1e2}' in response.content
    assert await keys(client, "a", filter={"b": 100}) == ["k"]


async def test_an_item_expires_after_its_time(site: Site, client: httpx.AsyncClient) -> None:
    item = await put(client, DOCS, "k", {}, ttl=60)
    assert item["expires_at"] == pytest.approx(time.time() + 60, abs=5)
    assert (await put(client, DOCS, "k", {}, ttl=0))["expires_at"] is None
    assert (await put(client, DOCS, "k", {}, ttl=None, index=False))["expires_at"] is None
    past = Change(namespace=tuple(DOCS), key="k", value=b"{}", expires_at=time.time() - 1)
    assert await site.store.change_items(ItemOwner(ALICE), [past])
    assert (await get(client, DOCS, "k")).status_code == 404
    assert await search(client) == []


async def test_a_put_may_depend_on_the_version(client: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {"namespace": DOCS, "key": "k", "value": {"by": "me"}}
    for version, status in ((1, 409), (0, 200), (0, 409), (2, 409), (1, 200), (None, 200)):
        response = await client.put(ITEMS, json={**body, "if_version": version})
        assert response.status_code == status
        if status == 409:
            error = error_of(response)
            assert (error["code"], error["param"]) == ("version_conflict", "if_version")
    assert response.json()["version"] == 3


# What is refused


PLACE = {"namespace": ["a"], "key": "k"}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        pytest.param([], None, id="no-object"),
        pytest.param({**PLACE}, "value", id="no-value"),
        pytest.param({**PLACE, "value": None}, "value", id="null"),
        pytest.param({**PLACE, "value": []}, "value", id="a-list"),
        pytest.param({**PLACE, "value": {"a": "x" * 262_144}}, "value", id="too-large"),
        pytest.param({"namespace": ["a"], "value": {}}, "key", id="no-key"),
        pytest.param({**PLACE, "key": "", "value": {}}, "key", id="empty-key"),
        pytest.param({**PLACE, "key": 7, "value": {}}, "key", id="number-as-key"),
        pytest.param({**PLACE, "key": "a\nb", "value": {}}, "key", id="control-in-key"),
        pytest.param({**PLACE, "key": "x" * 257, "value": {}}, "key", id="long-key"),
        pytest.param({"key": "k", "value": {}}, "namespace", id="no-namespace"),
        pytest.param({**PLACE, "namespace": [], "value": {}}, "namespace", id="no-label"),
        pytest.param({**PLACE, "namespace": "a", "value": {}}, "namespace", id="a-text"),
        pytest.param({**PLACE, "namespace": [1], "value": {}}, "namespace", id="number-as-label"),
        pytest.param({**PLACE, "namespace": [""], "value": {}}, "namespace", id="empty-label"),
        pytest.param({**PLACE, "namespace": ["\x01"], "value": {}}, "namespace", id="control"),
        pytest.param({**PLACE, "namespace": ["\x85"], "value": {}}, "namespace", id="control-c1"),
        pytest.param({**PLACE, "namespace": ["x" * 257], "value": {}}, "namespace", id="long"),
        pytest.param({**PLACE, "namespace": ["a"] * 11, "value": {}}, "namespace", id="deep"),
        pytest.param({**PLACE, "namespace": ["users"], "value": {}}, "namespace", id="whose"),
        pytest.param(
            {**PLACE, "namespace": ["users", "a b"], "value": {}}, "namespace[1]", id="no-user"
        ),
        pytest.param({**PLACE, "value": {}, "ttl": -1}, "ttl", id="negative-ttl"),
        pytest.param({**PLACE, "value": {}, "ttl": 1.5}, "ttl", id="fraction-as-ttl"),
        pytest.param({**PLACE, "value": {}, "ttl": 1e300}, "ttl", id="ttl-beyond-all"),
        pytest.param({**PLACE, "value": {}, "if_version": -1}, "if_version", id="version"),
        pytest.param({**PLACE, "value": {}, "if_version": "1"}, "if_version", id="version-text"),
    ],
)
async def test_a_put_that_says_nonsense_is_refused(
    client: httpx.AsyncClient, body: object, param: str | None
) -> None:
    response = await client.put(ITEMS, json=body)
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert await search(client) == []


async def test_the_largest_that_is_allowed_is_kept(client: httpx.AsyncClient) -> None:
    namespace, key = ["x" * 256] * 10, "漢" * 256
    value = {"a": "x" * (262_144 - 8)}
    item = await put(client, namespace, key, value)
    assert (item["namespace"], item["key"], item["value"]) == (namespace, key, value)
    assert (await get(client, namespace, key)).json() == item


@pytest.mark.parametrize(("levels", "param"), [(101, "value"), (50_000, None)])
async def test_values_nested_beyond_reason_are_refused(
    client: httpx.AsyncClient, levels: int, param: str | None
) -> None:
    nest = b'{"a":' * levels + b"1" + b"}" * levels
    body = b'{"namespace": ["a"], "key": "k", "value": %b}' % nest
    response = await client.put(ITEMS, content=body)
    assert response.status_code == 400 and error_of(response)["param"] == param
    response = await client.post(SEARCH, content=b'{"filter": %b}' % nest)
    assert response.status_code == 400
    assert await search(client) == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({}, "namespace"),
        ({"namespace": "a"}, "key"),
        ({"namespace": ["a", ""], "key": "k"}, "namespace"),
        ({"namespace": "users", "key": "k"}, "namespace"),
    ],
)
async def test_a_get_must_say_which_item(
    client: httpx.AsyncClient, query: dict[str, Any], param: str
) -> None:
    for method in ("GET", "DELETE"):
        response = await client.request(method, ITEMS, params=query)
        assert response.status_code == 400 and error_of(response)["param"] == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"namespace_prefix": "a"}, "namespace_prefix"),
        ({"namespace_prefix": ["users"]}, "namespace_prefix"),
        ({"query": 7}, "query"),
        ({"filter": []}, "filter"),
        ({"filter": {"a": {"$regex": "x"}}}, "filter"),
        ({"filter": {"a": {"b": {"$in": []}}}}, "filter"),
        ({"filter": {"a": {"$eq": 1, "b": 2}}}, "filter"),
        ({"filter": {"$eq": 1}}, "filter"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": "7"}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": True}, "offset"),
    ],
)
async def test_a_search_that_says_nonsense_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any], param: str
) -> None:
    response = await client.post(SEARCH, json=body)
    assert response.status_code == 400 and error_of(response)["param"] == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"prefix": ["users"]}, "prefix"),
        ({"prefix": ["users", "*"]}, "prefix"),
        ({"suffix": [""]}, "suffix"),
        ({"max_depth": 0}, "max_depth"),
        ({"limit": 0}, "limit"),
        ({"offset": 1.5}, "offset"),
    ],
)
async def test_a_list_of_namespaces_that_is_nonsense_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any], param: str
) -> None:
    response = await client.post(NAMESPACES, json=body)
    assert response.status_code == 400 and error_of(response)["param"] == param


# Searching


async def test_a_search_goes_by_prefix_place_and_page(client: httpx.AsyncClient) -> None:
    for key in "cab":
        await put(client, ["docs", key], key, {"n": key})
    await put(client, ["docs"], "z", {})
    await put(client, ["docsandmore"], "no", {})
    assert await keys(client, "docs") == ["z", "a", "b", "c"]
    assert await keys(client, "docs", "b") == ["b"]
    assert await keys(client) == ["z", "a", "b", "c", "no"]
    assert await keys(client, "doc") == []
    first = await client.post(SEARCH, json={"namespace_prefix": ["docs"], "limit": 3})
    assert (first.json()["has_more"], first.json()["next"]) == (True, 3)
    rest = await client.post(SEARCH, json={"namespace_prefix": ["docs"], "limit": 3, "offset": 3})
    assert (rest.json()["has_more"], rest.json()["next"]) == (False, None)
    assert [item["key"] for item in rest.json()["data"]] == ["c"]
    assert all(item["score"] is None for item in first.json()["data"])
    assert set(first.json()["data"][0]) == {*(await put(client, ["x"], "x", {})), "score"}


async def test_ten_are_found_unless_more_are_wanted_and_pages_fit_together(
    client: httpx.AsyncClient,
) -> None:
    names = [f"{n:03d}" for n in range(230)]
    for name in names:
        await put(client, ["docs"], name, {"even": int(name) % 2 == 0})
    assert await keys(client, "docs") == names[:10]
    assert await keys(client, "docs", limit=1000) == names
    assert await keys(client, "docs", limit=50, offset=90) == names[90:140]
    even = {"filter": {"even": True}}
    assert await keys(client, "docs", **even, limit=30, offset=45) == names[90:150:2]
    assert await keys(client, "docs", **even, limit=1000, offset=110) == names[220::2]
    assert await keys(client, "docs", **even, offset=115) == []


FIELDS: dict[str, dict[str, Any]] = {
    "kai": {"name": "Kai", "age": 31, "likes": ["sea", "tea"], "home": {"city": "Kiel", "nr": 5}},
    "eve": {"name": "Eve", "age": "40", "member": True, "since": "2024-05-01"},
    "bob": {"name": "Bob", "age": None, "member": 1, "since": "2025-01-31"},
}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["bob", "eve", "kai"]),
        ({"name": "Kai"}, ["kai"]),
        ({"name": {"$eq": "Kai"}}, ["kai"]),
        ({"name": {"$ne": "Kai"}}, ["bob", "eve"]),
        ({"name": "Kai", "age": 40}, []),
        ({"age": {"$gt": 31}}, ["eve"]),
        ({"age": {"$gte": 31}}, ["eve", "kai"]),
        ({"age": {"$gt": 30, "$lt": 35}}, ["kai"]),
        ({"age": {"$lte": "31"}}, ["kai"]),
        ({"age": {"$lt": 31}}, []),
        ({"age": None}, ["bob"]),
        ({"age": {"$ne": 31}}, ["bob", "eve"]),
        ({"member": True}, ["eve"]),
        ({"member": 1}, ["bob"]),
        ({"member": {"$ne": True}}, ["bob", "kai"]),
        ({"missing": {"$ne": 1}}, ["bob", "eve", "kai"]),
        ({"missing": {"$eq": 1}}, []),
        ({"missing": {"$gte": 0}}, []),
        ({"missing": None}, ["bob", "eve", "kai"]),
        ({"since": {"$gte": "2025-01-01"}}, ["bob"]),
        ({"since": {"$lt": "2025-01-01"}}, ["eve"]),
        ({"home": {"city": "Kiel"}}, ["kai"]),
        ({"home": {"city": {"$ne": "Bonn"}, "nr": {"$gt": 4}}}, ["kai"]),
        ({"home": {"city": "Kiel", "nr": 6}}, []),
        ({"home": {"$eq": {"city": "Kiel", "nr": 5}}}, ["kai"]),
        ({"likes": ["sea", "tea"]}, ["kai"]),
        ({"likes": ["tea", "sea"]}, []),
        ({"likes": ["sea"]}, []),
        ({"likes": ["sea", {"$ne": "rum"}]}, ["kai"]),
    ],
)
async def test_a_filter_lets_through_what_langgraphs_does(
    client: httpx.AsyncClient, wanted: dict[str, Any], found: list[str]
) -> None:
    for key, value in FIELDS.items():
        await put(client, ["people"], key, value)
    assert await keys(client, "people", filter=wanted) == found


async def test_a_query_finds_the_words_of_all_texts_best_first(client: httpx.AsyncClient) -> None:
    texts: dict[str, dict[str, Any]] = {
        "a": {"text": "We had soup and bread."},
        "b": {"title": "Boats", "parts": [{"text": "My boat is called Marlin."}]},
        "c": {"text": "A boat, the harbour, the weather, and much else that was said that day."},
        "d": {"marlin": "a name of a field says nothing"},
        "e": {"text": "我昨天在上海买了一条船"},
        "f": {"text": "今天天气很好"},
    }
    for key, value in texts.items():
        await put(client, ["notes"], key, value)
    found = await search(client, "notes", query="the boat Marlin")
    assert [item["key"] for item in found] == ["b", "c"]
    assert found[0]["score"] > found[1]["score"] > 0
    assert found[0]["value"] == texts["b"]
    assert await keys(client, "notes", query="上海") == ["e"]
    assert (await keys(client, "notes", query="天气"))[0] == "f"
    assert await keys(client, "notes", query="zyxwv") == []
    assert await keys(client, "notes", query="boat", limit=1) == ["b"]
    assert await keys(client, "notes", query="boat", limit=1, offset=1) == ["c"]
    assert await keys(client, "notes", query="boat", filter={"title": None}) == ["c"]
    assert len(await search(client, "notes", query="")) == 6


async def test_a_query_looks_at_so_many_items_and_no_more(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(item_search, "MAX_RANKED", 100)
    for n in range(101):
        await put(client, ["notes"], f"{n:03d}", {"text": f"boat {'boat' * (n % 5)}"})
    found = await keys(client, "notes", query="boat", limit=1000)
    assert sorted(found) == [f"{n:03d}" for n in range(100)]


# Records of requests


async def keyed(client: httpx.AsyncClient, count: int) -> None:
    """So many requests with an Idempotency-Key."""
    body = {"messages": talk("hello")}
    for n in range(count):
        key = {"idempotency-key": f"k{n}"}
        response = await client.post(f"{SESSIONS}/s/messages", json=body, headers=key)
        assert response.status_code == 200


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
async def test_records_of_requests_are_found_only_where_they_are_named(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(item_search, "AT_ONCE", at_once)
    monkeypatch.setattr(item_search, "MAX_RANKED", 5)
    await keyed(client, 7)
    own = ["apple", "pear", "zoo"]
    for name in own:
        await put(client, [name], name, {"text": f"a boat called {name}"})
    await put(client, [f"{REQUESTS}-of-ours"], "r", {"text": "boat"})
    assert await keys(client) == ["apple", "pear", "r", "zoo"]
    assert await keys(client, offset=2, limit=1) == ["r"]
    assert await keys(client, filter={"text": "boat"}) == ["r"]
    assert sorted(await keys(client, query="boat")) == ["apple", "pear", "r", "zoo"]
    last = (await client.post(SEARCH, json={"limit": 4})).json()
    assert (last["has_more"], last["next"]) == (False, None)
    assert len(await keys(client, REQUESTS)) == 7


async def test_the_namespace_of_records_of_requests_is_listed_where_it_is_named(
    client: httpx.AsyncClient,
) -> None:
    await keyed(client, 1)
    await put(client, ["apple"], "k", {})
    await put(client, ["zoo"], "k", {})
    for prefix in ([], ["*"]):
        assert await namespaces(client, prefix=prefix) == [["apple"], ["zoo"]]
    assert await namespaces(client, offset=1, limit=1) == [["zoo"]]
    assert await namespaces(client, suffix=[REQUESTS]) == []
    assert await namespaces(client, prefix=[REQUESTS]) == [[REQUESTS]]


# Namespaces


async def test_namespaces_are_listed_by_prefix_suffix_and_depth(client: httpx.AsyncClient) -> None:
    for namespace in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "x", "c"], ["ab"], ["z", "b"]):
        await put(client, namespace, "k", {})
    everything = [["a"], ["a", "b"], ["a", "b", "c"], ["a", "x", "c"], ["ab"], ["z", "b"]]
    assert await namespaces(client) == everything
    assert await namespaces(client, prefix=["a"]) == everything[:4]
    assert await namespaces(client, prefix=["a", "*", "c"]) == everything[2:4]
    assert await namespaces(client, prefix=["*", "b"]) == [everything[n] for n in (1, 2, 5)]
    assert await namespaces(client, suffix=["b"]) == [["a", "b"], ["z", "b"]]
    assert await namespaces(client, suffix=["*", "c"], prefix=["a"]) == everything[2:4]
    assert await namespaces(client, max_depth=1) == [["a"], ["ab"], ["z"]]
    assert await namespaces(client, max_depth=2, prefix=["a"]) == [["a"], ["a", "b"], ["a", "x"]]
    assert await namespaces(client, limit=2, offset=1) == everything[1:3]
    page = (await client.post(NAMESPACES, json={"limit": 2, "offset": 1})).json()
    assert (page["object"], page["has_more"], page["next"]) == ("list", True, 3)
    last = (await client.post(NAMESPACES, json={"limit": 5, "offset": 1})).json()
    assert (last["has_more"], last["next"]) == (False, None)


# Whose


async def test_what_belongs_to_people_lies_on_their_shelves(
    site: Site, client: httpx.AsyncClient
) -> None:
    await put(client, ["users", "kai", "prefs"], "k", {"of": "kai"})
    await put(client, ["users", "eve", "prefs"], "k", {"of": "eve"})
    await put(client, ["docs"], "k", {})
    assert [item["value"] for item in await search(client, "users", "kai")] == [{"of": "kai"}]
    assert await namespaces(client, prefix=["users", "eve"]) == [["users", "eve", "prefs"]]
    assert await namespaces(client) == [["docs"]]
    assert [item["namespace"] for item in await search(client)] == [["docs"]]
    page = await site.store.items(ItemOwner(ALICE, "kai"), (), None, 10)
    assert [item.namespace for item in page.items] == [("users", "kai", "prefs")]


async def test_a_tenant_sees_its_own_items_only_and_the_administrator_all(
    site: Site, client: httpx.AsyncClient
) -> None:
    await put(client, DOCS, "k", {})
    async with site.client("mallory") as other:
        assert (await get(other, DOCS, "k")).status_code == 404
        assert await search(other) == [] == await namespaces(other)
        response = await other.request("DELETE", ITEMS, json={"namespace": DOCS, "key": "k"})
        assert response.status_code == 404
    async with site.client(ADMIN_KEY) as admin:
        assert (await get(admin, DOCS, "k")).status_code == 400
        query = {"namespace": DOCS, "key": "k", "tenant": ALICE}
        assert (await admin.get(ITEMS, params=query)).status_code == 200
    async with site.client(None, peer="203.0.113.9") as stranger:
        for method, path in (
            ("GET", ITEMS),
            ("PUT", ITEMS),
            ("DELETE", ITEMS),
            ("POST", SEARCH),
            ("POST", NAMESPACES),
        ):
            response = await stranger.request(method, path)
            assert response.status_code == 401
    assert (await get(client, DOCS, "k")).status_code == 200


RESERVED_NAMESPACES: list[Namespace] = [("users", "kai", name) for name in sorted(Kinds().labels)]
RESERVED_NAMESPACES += [("users", "kai", "facts", "x"), ("instructions",), ("instructions", "x")]


@pytest.mark.parametrize("namespace", RESERVED_NAMESPACES, ids="/".join)
async def test_what_was_learned_is_read_but_not_written(
    site: Site, client: httpx.AsyncClient, namespace: Namespace
) -> None:
    await learned(site, namespace)
    place = {"namespace": list(namespace), "key": "k"}
    for response in (
        await client.put(ITEMS, json={**place, "value": {}}),
        await client.request("DELETE", ITEMS, json=place),
        await client.delete(ITEMS, params=place),
    ):
        assert response.status_code == 409
        error = error_of(response)
        assert error["code"] == "reserved_namespace"
        label = namespace[2] if namespace[0] == "users" else namespace[0]
        assert error["message"].startswith(f'The label "{label}" is reserved here: take another')
        assert "/memory/v1/users/{id}/memories" in error["message"]
    found = await get(client, list(namespace), "k")
    assert found.json()["value"] == {"text": "Kai sails."}
    assert await keys(client, *namespace, query="sails") == ["k"]


async def test_names_like_reserved_ones_are_free_elsewhere(client: httpx.AsyncClient) -> None:
    for namespace in (
        ["facts"],
        ["users", "facts", "x"],
        ["users", "kai"],
        ["users", "kai", "x", "facts"],
        ["team", "kai", "facts"],
        ["Instructions"],
    ):
        assert (await put(client, namespace, "k", {}))["version"] == 1
