"""LangGraph's store over the proxy, beside LangGraph's own in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from proxy.integrations import langgraph
from proxy.integrations.langgraph import MemoryProxyError, MemoryProxyStore
from proxy.tenancy import digest_of
from tests.integrations.conftest import ADMIN_KEY, Open, Served

ALL = 10_000


def plain(result: object) -> object:
    """A result without its times; items in the order of their places.

    InMemoryStore lists items in the order in which they were put, the proxy by place.
    """
    if isinstance(result, Item):
        return result.namespace, result.key, result.value, getattr(result, "score", None)
    if isinstance(result, list):
        return sorted(map(plain, result), key=repr)
    return result


def fruit(store: BaseStore) -> None:
    store.put(("docs", "fruit"), "apple", {"colour": "red", "size": 2, "at": {"shop": "a", "n": 1}})
    store.put(("docs", "fruit"), "pear", {"colour": "green", "size": 3.5, "tags": ["a", "b"]})
    store.put(
        ("docs", "fruit", "dried"), "fig", {"colour": "brown", "size": 1, "at": {"shop": "a"}}
    )
    store.put(("docs",), "fig", {"colour": None, "size": 10})
    store.put(("users", "kim", "notes"), "fig", {"colour": "red", "size": 0})


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(GetOp(("docs", "fruit"), "apple"), id="get"),
        pytest.param(GetOp(("docs", "fruit"), "fig"), id="another namespace's key"),
        pytest.param(GetOp(("doc",), "fig"), id="nothing there"),
        pytest.param(SearchOp(("docs",)), id="search"),
        pytest.param(SearchOp(("doc",)), id="labels are whole"),
        pytest.param(SearchOp(("users", "kim")), id="a person's"),
        pytest.param(SearchOp(("docs",), {"colour": "red"}), id="equal"),
        pytest.param(SearchOp(("docs",), {"colour": None}), id="null"),
        pytest.param(SearchOp(("docs",), {"tags": ["a", "b"]}), id="a list"),
        pytest.param(SearchOp(("docs",), {"tags": ("a", "b")}), id="a tuple"),
        pytest.param(SearchOp(("docs",), {"at": {"shop": "a"}}), id="within"),
        pytest.param(SearchOp(("docs",), {"at": {"n": {"$eq": 1}}}), id="operator within"),
        pytest.param(SearchOp(("docs",), {"size": {"$gt": 1, "$lte": 3.5}}), id="a range"),
        pytest.param(SearchOp(("docs",), {"colour": {"$ne": "red"}}), id="not equal"),
        pytest.param(SearchOp(("docs",), {"size": {"$lt": 3}, "colour": "red"}), id="both"),
        pytest.param(SearchOp(("docs",), {}), id="empty filter"),
        pytest.param(SearchOp(("docs",), limit=0), id="none wanted"),
        pytest.param(SearchOp(("docs",), limit=5000), id="more than one page has"),
        pytest.param(SearchOp(("docs",), offset=9), id="behind the end"),
        pytest.param(ListNamespacesOp((MatchCondition("prefix", ("docs",)),)), id="namespaces"),
        pytest.param(
            ListNamespacesOp((MatchCondition("prefix", ("docs",)),), max_depth=2), id="depth"
        ),
        pytest.param(ListNamespacesOp((MatchCondition("suffix", ("*", "dried")),)), id="suffix"),
        pytest.param(
            ListNamespacesOp((MatchCondition("prefix", ("users", "kim")),)), id="a person's names"
        ),
    ],
)
def test_it_answers_what_langgraphs_own_store_answers(store: MemoryProxyStore, op: Op) -> None:
    own = InMemoryStore()
    for each in (own, store):
        fruit(each)
    assert plain(store.batch([op])) == plain(own.batch([op]))


PLACES = st.tuples(
    st.lists(st.sampled_from(["a", "b", "ab", "ä ö"]), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["k", "k2", "漢"]),
)
NUMBERS = st.integers(-2, 2) | st.floats(-2, 2)
VALUES = st.fixed_dictionaries(
    {"n": NUMBERS},
    optional={"t": st.sampled_from(["x", "y"]), "o": st.fixed_dictionaries({"n": NUMBERS})},
)
PUTS = st.builds(lambda place, value: PutOp(place[0], place[1], value), PLACES, st.none() | VALUES)
BATCHES = st.lists(st.lists(PUTS, max_size=4), max_size=4)
COMPARISONS = st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), NUMBERS
)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "n": COMPARISONS | NUMBERS,  # every value has one: InMemoryStore needs that
        "t": st.sampled_from(["x", None, {"$ne": "x"}]),
        "o": st.fixed_dictionaries({"n": NUMBERS}),
    },
)
PREFIXES = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2).map(tuple)
PATHS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).map(tuple)
CONDITIONS = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=3
).map(tuple)
PART = st.tuples(st.integers(0, 4), st.integers(0, 4))


@settings(max_examples=30, deadline=None)
@given(BATCHES, PLACES, PREFIXES, FILTERS, CONDITIONS, st.none() | st.integers(1, 4), PART)
def test_whatever_was_put_it_answers_the_same(
    open_store: Open,
    batches: list[list[PutOp]],
    place: tuple[tuple[str, ...], str],
    prefix: tuple[str, ...],
    wanted: dict[str, Any],
    conditions: tuple[MatchCondition, ...],
    depth: int | None,
    part: tuple[int, int],
) -> None:
    own, store = InMemoryStore(), open_store()
    for batch in batches:
        reads: list[Op] = [GetOp(*place), SearchOp(prefix, wanted, ALL)]
        asked = [*reads, *batch, *reads]
        assert list(map(plain, store.batch(asked))) == list(map(plain, own.batch(asked)))
    names = ListNamespacesOp(conditions, depth, part[1], part[0])
    assert store.batch([names]) == without_empty_namespaces(own).batch([names])
    whole = store.search(prefix, filter=wanted, limit=ALL)
    assert plain(whole) == plain(own.search(prefix, filter=wanted, limit=ALL))
    assert [(item.namespace, item.key) for item in whole] == sorted(
        (item.namespace, item.key) for item in whole
    )
    offset, limit = part
    some = store.search(prefix, filter=wanted, offset=offset, limit=limit)
    assert some == whole[offset : offset + limit]


def without_empty_namespaces(store: InMemoryStore) -> InMemoryStore:
    """InMemoryStore lists namespaces that were only looked at, or had items once."""
    copy = InMemoryStore()
    for item in store.search((), limit=ALL):
        copy.put(item.namespace, item.key, item.value)
    return copy


def test_a_batch_reads_before_it_writes_and_the_last_put_counts(store: MemoryProxyStore) -> None:
    store.put(("a",), "k", {"n": 0})
    put, gone = PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", None)
    before, none = store.batch(op for op in (GetOp(("a",), "k"), gone, put))[:2]
    assert isinstance(before, Item)
    assert (before.value, none) == ({"n": 0}, None)
    after = store.get(("a",), "k")
    assert after is not None
    assert after.value == {"n": 1}


def test_nothing_is_written_where_a_part_of_a_batch_makes_no_sense(store: MemoryProxyStore) -> None:
    good, bad = PutOp(("a",), "k", {}), PutOp(("a",), "k2", {"x": object()})
    with pytest.raises(TypeError, match="object cannot be put into JSON"):
        store.batch([good, bad])
    unknown: Any = "get"
    with pytest.raises(ValueError, match="str is no operation"):
        store.batch([good, unknown])
    with pytest.raises(ValueError, match="no way to match"):
        store.batch([good, ListNamespacesOp((MatchCondition("infix", ("a",)),))])  # type: ignore[arg-type]
    assert store.search(()) == []


def test_lists_longer_than_a_page_are_read_page_by_page(
    store: MemoryProxyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.batch([PutOp(("a", str(n)), "k", {"n": n}) for n in range(7)])
    monkeypatch.setattr(langgraph, "PAGE", 2)
    assert [item.value["n"] for item in store.search((), limit=5, offset=1)] == [1, 2, 3, 4, 5]
    assert len(store.search((), limit=ALL)) == 7
    assert store.list_namespaces(offset=4) == [("a", "4"), ("a", "5"), ("a", "6")]


def test_a_put_again_keeps_the_time_of_creation(store: MemoryProxyStore) -> None:
    """InMemoryStore forgets it; LangGraph's databases keep it, and so does the proxy."""
    began = datetime.now(UTC)
    store.put(("a",), "k", {"n": 1})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    second = store.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert abs(first.created_at - began) < timedelta(seconds=10)
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_values_and_filters_are_kept_as_json_has_them(store: MemoryProxyStore) -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    store.put(("a",), "k", {"at": noon, "pair": (1, 2)})
    found = store.get(("a",), "k")
    assert found is not None
    assert found.value == {"at": "2026-01-02T12:00:00Z", "pair": [1, 2]}
    assert [item.key for item in store.search((), filter={"at": noon, "pair": (1, 2)})] == ["k"]


def test_a_query_finds_by_words_the_best_first(store: MemoryProxyStore) -> None:
    """InMemoryStore without an index takes no notice of a query."""
    store.put(("notes",), "tea", {"text": "She drinks green tea, and never coffee."})
    store.put(("notes",), "dog", {"text": "The dog is called Bruno."}, index=False)
    store.put(("notes",), "cup", {"text": "The cup for her coffee and the coffee itself."})
    found = store.search(("notes",), query="coffee")
    assert {item.key for item in found} == {"tea", "cup"}
    scores = [item.score or 0 for item in found]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0


# Time to live


def test_a_ttl_is_in_minutes_from_the_put(
    served: Served, http: httpx.Client, key: str, store: MemoryProxyStore
) -> None:
    store = MemoryProxyStore(served.url, key, client=http, default_ttl=2)
    for name, more in {"own": {"ttl": 1.001}, "none": {"ttl": None}, "default": {}}.items():
        store.put(("a",), name, {}, **more)  # type: ignore[arg-type]
    lives = {}
    for item in listed(served, http, key):
        ends = item["expires_at"]
        lives[item["key"]] = None if ends is None else round(ends - item["updated_at"])
    assert lives == {"own": 61, "none": None, "default": 120}


def listed(served: Served, http: httpx.Client, key: str) -> list[dict[str, Any]]:
    headers = {"authorization": f"Bearer {key}"}
    url = f"{served.url}/memory/v1/store/items/search"
    found: list[dict[str, Any]] = http.post(url, json={}, headers=headers).json()["data"]
    return found


# Whose memory


def test_keys_and_people_see_only_their_own(
    served: Served, http: httpx.Client, key: str, open_store: Open
) -> None:
    store = MemoryProxyStore(f"{served.url}/v1/", key, client=http)
    store.put(("users", "kim"), "k", {"n": 1})
    store.put(("a",), "k", {"n": 2})
    assert open_store().search(()) == []
    assert [item.value for item in store.search(())] == [{"n": 2}]
    assert store.search(("users", "lee")) == []
    assert store.list_namespaces() == [("a",)]
    tenant = digest_of(key.encode())
    administrator = MemoryProxyStore(served.url, ADMIN_KEY, tenant, http)
    assert [item.value for item in administrator.search(("users", "kim"))] == [{"n": 1}]


def test_a_tenant_that_has_nothing_yet_is_empty_to_the_administrator(
    served: Served, http: httpx.Client
) -> None:
    store = MemoryProxyStore(served.url, ADMIN_KEY, "brand-new", http)
    assert (store.get(("a",), "k"), store.search(()), store.list_namespaces()) == (None, [], [])
    store.delete(("a",), "k")
    store.put(("a",), "k", {"n": 1})
    assert [item.value for item in store.search(())] == [{"n": 1}]


@pytest.mark.parametrize(
    ("ask", "status", "code"),
    [
        pytest.param(
            lambda store: store.put(("users", "kim", "facts"), "k", {}),
            409,
            "reserved_namespace",
            id="what the proxy learns",
        ),
        pytest.param(lambda store: store.search(("users",)), 400, "invalid_value", id="everybody"),
        pytest.param(
            lambda store: store.put(("a",), "k", {"v": "x" * 300_000}),
            400,
            "invalid_value",
            id="too large",
        ),
        pytest.param(
            lambda store: store.search((), filter={"a": {"$in": [1]}}),
            400,
            "invalid_value",
            id="no operator",
        ),
    ],
)
def test_what_the_proxy_refuses_is_an_error_with_its_reason(
    store: MemoryProxyStore, ask: Callable[[BaseStore], object], status: int, code: str
) -> None:
    with pytest.raises(MemoryProxyError) as caught:
        ask(store)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert caught.value.message in str(caught.value)
