"""Items on shelves, on every back end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from proxy.memory.items import Change, Item, ItemOwner, Namespace, OwnedPlace, Place
from proxy.memory.model import SessionKey
from proxy.stores.open import Backend
from proxy.stores.redis import items as redis_items
from proxy.stores.sqlite import rows as sqlite_rows
from tests.support.clock import Clock
from tests.support.store.commits import chat
from tests.support.store.shelves import at, gone, places, put, value

FACTS = ("users", "kai", "facts")
NASTY = (
    "a b",
    "ä",
    "漢字",
    "{a}",
    "a:b",
    "%7B",
    "*?[^]\\",
    '"',
    "'; DROP TABLE items; --",
    "\U0001f600",
)


@pytest.fixture
def shelf(tenant: str) -> ItemOwner:
    return ItemOwner(tenant, "kai")


async def test_an_item_is_described_exactly_from_first_to_last(
    store: Backend, shelf: ItemOwner, clock: Clock
) -> None:
    clock.now = 1000.125
    assert await store.change_items(shelf, [put(FACTS, "k", b'{"a": 1}')])
    first = Item(
        namespace=FACTS,
        key="k",
        value=msgspec.Raw(b'{"a": 1}'),
        version=1,
        created_at=1000.125,
        updated_at=1000.125,
    )
    assert await at(store, shelf, FACTS, "k") == first
    clock.now = 1001.1
    assert await store.change_items(shelf, [put(FACTS, "k", b"{ }", expires_at=2000.7)])
    second = Item(
        namespace=FACTS,
        key="k",
        value=msgspec.Raw(b"{ }"),
        version=2,
        created_at=1000.125,
        updated_at=1001.1,
        expires_at=2000.7,
    )
    assert await at(store, shelf, FACTS, "k") == second
    assert (await store.items(shelf, FACTS, None, 10)).items == (second,)
    assert await store.change_items(shelf, [put(FACTS, "k")])
    item = await at(store, shelf, FACTS, "k")
    assert item is not None and (item.version, item.expires_at) == (3, None)
    assert await store.change_items(shelf, [gone(FACTS, "k")])
    assert await at(store, shelf, FACTS, "k") is None
    assert await store.change_items(shelf, [gone(FACTS, "k")])
    assert await store.change_items(shelf, [put(FACTS, "k")])
    again = await at(store, shelf, FACTS, "k")
    assert again is not None and (again.version, again.created_at) == (1, 1001.1)


async def test_items_are_looked_up_together_and_missing_ones_left_out(
    store: Backend, shelf: ItemOwner
) -> None:
    await store.change_items(shelf, [put(("a",), "x"), put(("a",), "y"), put(("b",), "x")])
    wanted = [Place(("b",), "x"), Place(("a",), "z"), Place(("a",), "y"), Place((), "x")]
    assert set(await store.items_at(shelf, wanted)) == {wanted[0], wanted[2]}
    assert await store.items_at(shelf, []) == {}
    assert await store.items_at(ItemOwner(shelf.tenant, "eve"), wanted) == {}


async def test_items_of_several_owners_are_looked_up_together(
    store: Backend, shelf: ItemOwner
) -> None:
    tenant, x, y = ItemOwner(shelf.tenant), Place(("a",), "x"), Place(("a",), "y")
    await store.change_items(shelf, [put(*x), put(*y)])
    await store.change_items(tenant, [put(*y)])
    wanted = [OwnedPlace(owner, place) for place in (x, y) for owner in (shelf, tenant)]
    for _ in range(2):
        found = await store.items_of(wanted)
        assert set(found) == {wanted[0], wanted[2], wanted[3]}
        assert all(item.place == at.place for at, item in found.items())
    assert await store.items_of([]) == {}


async def test_a_change_may_depend_on_the_version_it_finds(
    store: Backend, shelf: ItemOwner
) -> None:
    place = (FACTS, "k")
    assert not await store.change_items(shelf, [put(*place, after=1)])
    assert not await store.change_items(shelf, [gone(*place, after=1)])
    assert await store.change_items(shelf, [gone(*place, after=0)])
    assert await store.change_items(shelf, [put(*place, b"1", after=0)])
    assert not await store.change_items(shelf, [put(*place, b"2", after=0)])
    assert await store.change_items(shelf, [put(*place, b"3", after=1)])
    assert not await store.change_items(shelf, [gone(*place, after=1)])
    assert await value(store, shelf, *place) == b"3"
    assert await store.change_items(shelf, [gone(*place, after=2)])
    assert await value(store, shelf, *place) is None


async def test_all_changes_are_made_or_none(store: Backend, shelf: ItemOwner) -> None:
    await store.change_items(shelf, [put(("a",), "1"), put(("b",), "2")])
    wrong = [
        put(("a",), "1", b"no"),
        gone(("b",), "2"),
        put(("c",), "3", after=1),
        put(("d",), "4"),
    ]
    assert not await store.change_items(shelf, wrong)
    assert await places(store, shelf) == [(("a",), "1"), (("b",), "2")]
    assert await value(store, shelf, ("a",), "1") == b"{}"
    right = [put(("a",), "1", b"yes"), gone(("b",), "2"), put(("c",), "3", after=0)]
    assert await store.change_items(shelf, right)
    assert await places(store, shelf) == [(("a",), "1"), (("c",), "3")]
    assert await store.change_items(shelf, [])


async def test_of_two_who_change_the_same_version_one_succeeds(
    store: Backend, shelf: ItemOwner
) -> None:
    for version in range(5):
        race = [store.change_items(shelf, [put(FACTS, "k", b"%d" % n, version)]) for n in range(8)]
        outcomes = await asyncio.gather(*race)
        assert outcomes.count(True) == 1
        assert await value(store, shelf, FACTS, "k") == b"%d" % outcomes.index(True)


async def test_items_are_listed_by_namespace_and_key_and_a_prefix_is_of_labels(
    store: Backend, shelf: ItemOwner
) -> None:
    ordered = [
        Place((), "top"),
        Place(("a",), ""),
        Place(("a",), "b"),
        Place(("a",), "k"),
        Place(("a", " "), "k"),
        Place(("a", "b"), "a"),
        Place(("a", "b"), "z"),
        Place(("a", "b", "c"), "k"),
        Place(("a", "bc"), "k"),
        Place(("a b",), "k"),
        Place(("ab",), "k"),
        Place(("é",), "k"),
        Place(("漢",), "k"),
        Place(("\U0001f600",), "k"),
    ]
    assert ordered == sorted(ordered)
    await store.change_items(shelf, [put(*place) for place in reversed(ordered)])
    assert await places(store, shelf) == ordered
    assert await places(store, shelf, ("a",)) == ordered[1:9]
    assert await places(store, shelf, ("a", "b")) == ordered[5:8]
    assert await places(store, shelf, ("a", "b", "c")) == ordered[7:8]
    assert await places(store, shelf, ("b",)) == []
    namespaces = sorted({place.namespace for place in ordered})
    assert await store.namespaces(shelf, (), None, 99) == namespaces
    assert await store.namespaces(shelf, ("a",), None, 99) == namespaces[1:6]
    assert await store.namespaces(shelf, ("a", "b"), None, 99) == namespaces[3:5]
    assert await store.namespaces(shelf, ("x",), None, 99) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 99])
async def test_namespaces_come_in_parts_each_behind_the_last_one(
    store: Backend, shelf: ItemOwner, limit: int
) -> None:
    below = [("a",), ("a", " "), ("a", "b"), ("a", "b", "c"), ("a", "bc"), ("a", "漢")]
    for namespace in ((), *below, ("ab",), ("b",)):
        await store.change_items(shelf, [put(namespace, "k"), put(namespace, "zz")])
    seen: list[Namespace] = []
    part: Sequence[Namespace] = []
    while not seen or len(part) == limit:
        part = await store.namespaces(shelf, ("a",), seen[-1] if seen else None, limit)
        assert len(part) <= limit
        seen += part
    assert seen == below


async def test_a_part_of_namespaces_begins_behind_one_wherever_that_is(
    store: Backend, shelf: ItemOwner
) -> None:
    for label in ("b", "c", "d"):
        await store.change_items(shelf, [put((label, "x"), "k")])
    for after, found in (
        (("a",), [("c", "x")]),
        (("c",), [("c", "x")]),
        (("c", "w"), [("c", "x")]),
        (("c", "x"), []),
        (("c", "y"), []),
        (("d",), []),
    ):
        assert await store.namespaces(shelf, ("c",), after, 10) == found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_hold_each_item_once_though_others_come(
    store: Backend, shelf: ItemOwner, limit: int
) -> None:
    await store.change_items(shelf, [put(("a", str(n % 3)), f"{n}") for n in range(7)])
    await store.change_items(shelf, [put(("b",), "k")])
    seen: list[Place] = []
    after: Place | None = None
    while True:
        page = await store.items(shelf, ("a",), after, limit)
        assert len(page.items) <= limit
        seen += [Place(item.namespace, item.key) for item in page.items]
        if page.after is None:
            break
        after = seen[-1]
        await store.change_items(shelf, [put(("a",), f"new{len(seen)}")])
    assert seen == sorted(Place(("a", str(n % 3)), f"{n}") for n in range(7))


async def test_a_page_of_large_items_ends_early(
    store: Backend, shelf: ItemOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (sqlite_rows, redis_items):
        monkeypatch.setattr(module, "PAGE_BYTES", 500_000)
    long = msgspec.json.encode("v" * 250_000)
    places = [Place(("a",), f"k{n:02d}") for n in range(12)]
    for place in places:
        await store.change_items(shelf, [Change(namespace=("a",), key=place.key, value=long)])
    found: list[Place] = []
    after: Place | None = None
    while not found or after is not None:
        page = await store.items(shelf, ("a",), after, 100)
        assert len(page.items) in (2, 4) or len(found) == len(places)
        found += [item.place for item in page.items]
        after = found[-1] if page.after is not None else None
    assert found == places


async def test_a_page_begins_behind_a_place_wherever_that_is(
    store: Backend, shelf: ItemOwner
) -> None:
    await store.change_items(shelf, [put(("b",), "k"), put(("c",), "k"), put(("d",), "k")])
    for after, found in (
        (Place(("a",), "z"), ["b"]),
        (Place(("b",), "j"), ["b"]),
        (Place(("b",), "k"), []),
        (Place(("c",), "a"), []),
    ):
        page = await store.items(shelf, ("b",), after, 10)
        assert [item.namespace[0] for item in page.items] == found and page.after is None


async def test_what_has_expired_is_not_there_for_anybody(
    store: Backend, shelf: ItemOwner, clock: Clock
) -> None:
    later = clock.now + 10
    await store.change_items(
        shelf,
        [
            put(("a",), "1", expires_at=later),
            put(("a",), "2"),
            put(("b",), "3", expires_at=later),
            put(("b", "c"), "4", expires_at=later + 10),
        ],
    )
    assert len(await places(store, shelf)) == 4
    clock.now = later
    assert await places(store, shelf) == [(("a",), "2"), (("b", "c"), "4")]
    assert await at(store, shelf, ("a",), "1") is None
    assert await store.namespaces(shelf, (), None, 99) == [("a",), ("b", "c")]
    assert [p.key for p in await places(store, shelf, ("b",))] == ["4"]
    assert not await store.change_items(shelf, [put(("a",), "1", after=1)])
    assert await store.change_items(shelf, [put(("a",), "1", after=0)])
    item = await at(store, shelf, ("a",), "1")
    assert item is not None and (item.version, item.created_at) == (1, later)
    assert await store.drop_items(shelf, ("b",)) == 1
    clock.now += 100
    assert await places(store, shelf) == [(("a",), "1"), (("a",), "2")]


async def test_hundreds_of_expired_items_hide_none_of_the_others(
    store: Backend, shelf: ItemOwner, clock: Clock
) -> None:
    over = [put(("a", f"{n:04d}"), "k", expires_at=clock.now + 1) for n in range(1200)]
    await store.change_items(shelf, [*over, put(("a", "9"), "k"), put(("a", "99"), "k")])
    clock.now += 2
    assert await places(store, shelf, ("a",)) == [(("a", "9"), "k"), (("a", "99"), "k")]
    assert await store.namespaces(shelf, ("a",), None, 99) == [("a", "9"), ("a", "99")]
    assert await store.namespaces(shelf, ("a",), None, 1) == [("a", "9")]
    page = await store.items(shelf, ("a",), None, 1)
    assert [item.namespace for item in page.items] == [("a", "9")] and page.after is not None
    assert await store.drop_items(shelf, ("a",)) == 2


async def test_dropping_a_prefix_leaves_all_else(store: Backend, shelf: ItemOwner) -> None:
    kept = [Place((), "k"), Place(("a",), "k"), Place(("a", "bc"), "k"), Place(("b",), "k")]
    lost = [Place(("a", "b"), f"{n}") for n in range(1100)] + [Place(("a", "b", "c"), "k")]
    await store.change_items(shelf, [put(*place) for place in (*kept, *lost)])
    assert await store.drop_items(shelf, ("a", "b")) == len(lost)
    assert await places(store, shelf) == kept
    assert await store.drop_items(shelf, ("a", "b")) == 0
    assert await store.drop_items(shelf, ()) == len(kept)
    assert await places(store, shelf) == [] == list(await store.namespaces(shelf, (), None, 99))


async def test_shelves_of_any_name_never_touch_each_other(store: Backend, tenant: str) -> None:
    users = ("", *NASTY, "kai", "item-places")
    shelves = [
        ItemOwner(of, user) for of in (tenant, f"{tenant}:{{x}}", f"{tenant}%") for user in users
    ]
    for n, shelf in enumerate(shelves):
        changes = [put((label,), key, b"%d" % n) for label in NASTY for key in NASTY]
        assert await store.change_items(shelf, changes)
    for n, shelf in enumerate(shelves):
        page = await store.items(shelf, (), None, 1000)
        assert {bytes(item.value) for item in page.items} == {b"%d" % n}
        found = sorted(Place((label,), key) for label in NASTY for key in NASTY)
        assert [Place(item.namespace, item.key) for item in page.items] == found
    assert await store.drop_items(shelves[0], ()) == len(NASTY) ** 2
    for shelf in shelves[1:]:
        assert len((await store.items(shelf, (), None, 1000)).items) == len(NASTY) ** 2


async def test_a_session_that_is_deleted_takes_no_items_along(store: Backend, tenant: str) -> None:
    key, own = SessionKey(tenant, "kai"), ItemOwner(tenant)
    for shelf in (ItemOwner(tenant, "kai"), own):
        await store.change_items(shelf, [put(("a",), "k")])
    await store.commit(key, chat("x1", user="kai"))
    assert await store.delete(key)
    for shelf in (ItemOwner(tenant, "kai"), own):
        assert await places(store, shelf) == [(("a",), "k")]


async def test_a_tenants_items_move_but_what_is_taken_stays(
    store: Backend, tenant: str, clock: Clock
) -> None:
    new = f"{tenant}-new"
    others = ItemOwner(f"{tenant}:kai", "kai")
    for shelf, label in (
        (ItemOwner(tenant), "own"),
        (ItemOwner(tenant, "k{a}i:*"), "his"),
        (others, "x"),
    ):
        await store.change_items(shelf, [put((label,), f"{n:04d}", b"[]") for n in range(700)])
    mine, theirs = ItemOwner(tenant, "eve"), ItemOwner(new, "eve")
    ending = clock.now + 10
    changes = [put(("a",), "1"), put(("a",), "2", b"mine"), put(("a",), "3", expires_at=ending)]
    await store.change_items(mine, changes)
    await store.change_items(mine, [put(("a",), "1", b"second")])
    over = put(("a",), "1", expires_at=clock.now)
    await store.change_items(theirs, [put(("a",), "2", b"taken"), over, put(("a",), "9")])
    before = await at(store, mine, ("a",), "1")
    assert await store.move(tenant, new) == 0
    assert (
        await places(store, ItemOwner(tenant))
        == []
        == await places(store, ItemOwner(tenant, "k{a}i:*"))
    )
    assert len(await places(store, ItemOwner(new))) == 700 == len(await places(store, others))
    assert len(await places(store, ItemOwner(new, "k{a}i:*"))) == 700
    assert await places(store, mine) == [(("a",), "2")]
    assert await value(store, mine, ("a",), "2") == b"mine"
    assert await value(store, theirs, ("a",), "2") == b"taken"
    assert await at(store, theirs, ("a",), "1") == before
    assert [place.key for place in await places(store, theirs)] == ["1", "2", "3", "9"]
    clock.now = ending
    assert [place.key for place in await places(store, theirs)] == ["1", "2", "9"]
    assert await store.move(new, new) == 0
    assert len(await places(store, ItemOwner(new))) == 700
