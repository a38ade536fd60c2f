"""What only the Redis store promises of items and usage: one slot, no key left, moves redone."""

from __future__ import annotations

import pytest
from redis.crc import key_slot

from proxy.memory.items import ItemOwner, Place
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull
from proxy.memory.usage import UsageKey, UsageTotals
from proxy.stores.open import Backend
from proxy.stores.redis.base import list_keys, session_keys
from proxy.stores.redis.items import item_keys
from proxy.stores.redis.work import KEPT_SECONDS
from tests.support.clock import Clock
from tests.support.processes.redis import Server
from tests.support.store.shelves import at, gone, places, put, value

KAI = ItemOwner("tenant", "kai")
NEW = ItemOwner("new", "kai")
DAY = "2026-01-31"
FACTS = UsageKey(DAY, "facts")
ONE = UsageTotals(calls=1, input_tokens=100)


@pytest.fixture
def url(server: Server) -> str:
    return server.url


def lives(server: Server) -> list[int]:
    """How long the keys of the shelf live (s, -1 for ever, -2 where there is none)."""
    return [int(server.ask("TTL", key)) for key in item_keys(KAI)]


def test_the_keys_of_a_shelf_lie_in_one_slot_and_are_no_others() -> None:
    for shelf in (KAI, ItemOwner("tenant"), ItemOwner("a:b", "{c}")):
        keys = item_keys(shelf)
        assert len({key_slot(key) for key in keys}) == 1
        others = [*session_keys(SessionKey(shelf.tenant, shelf.user or "x"))]
        others += list_keys(shelf.tenant, shelf.user or None) + list_keys(shelf.tenant)
        assert not set(keys) & set(others)
    assert not set(item_keys(ItemOwner("a", "b"))) & set(item_keys(ItemOwner("a:b")))


async def test_a_shelf_without_items_leaves_no_key(store: Backend, server: Server) -> None:
    await store.change_items(KAI, [put(("a",), f"{n}", expires_at=9e9 + n) for n in range(700)])
    await store.change_items(KAI, [gone(("a",), "0")])
    assert await store.drop_items(KAI, ()) == 699
    await store.change_items(KAI, [put(("a",), "k")])
    await store.change_items(KAI, [gone(("a",), "k")])
    assert server.ask("KEYS", "*") == []


async def test_a_shelf_ends_with_the_last_of_its_items(
    store: Backend, server: Server, clock: Clock
) -> None:
    await store.change_items(KAI, [put(("a",), "1", expires_at=clock.now + 100)])
    assert all(150 <= life <= 160 for life in lives(server))
    await store.change_items(KAI, [put(("a",), "2", expires_at=clock.now + 1000)])
    assert all(1050 <= life <= 1060 for life in lives(server))
    await store.change_items(KAI, [put(("a",), "3")])
    assert lives(server) == [-1] * 3
    await store.change_items(KAI, [gone(("a",), "3")])
    assert all(1050 <= life <= 1060 for life in lives(server))
    await store.change_items(KAI, [put(("a",), "2")])
    assert lives(server) == [-1] * 3
    await store.change_items(KAI, [gone(("a",), "1"), put(("a",), "2", expires_at=1e300)])
    assert all(life > 9e9 for life in lives(server))


async def test_what_has_expired_is_removed_by_later_changes(
    store: Backend, server: Server, clock: Clock
) -> None:
    over = [put(("a",), f"{n:03d}", expires_at=clock.now + 1) for n in range(25)]
    await store.change_items(KAI, [*over, put(("a",), "k")])
    clock.now += 2
    assert len(await places(store, KAI)) == 1
    for left in (16, 6, 1, 1):
        await store.change_items(KAI, [put(("a",), "k")])
        sizes = (
            server.ask("HLEN", item_keys(KAI)[0]),
            server.ask("ZCARD", item_keys(KAI)[1]),
            server.ask("ZCARD", item_keys(KAI)[2]),
        )
        assert sizes == (left, left, left - 1)


async def test_looking_costs_the_same_however_many_items_there_are(
    store: Backend, server: Server
) -> None:
    def sent() -> int:
        with server.client() as client:
            return int(client.info()["total_net_output_bytes"])

    costs = []
    for count in (200, 10_000):
        for first in range(0, count, 500):
            some = [put(("a", f"{n % 20:02d}"), f"{n:05d}") for n in range(first, first + 500)]
            await store.change_items(KAI, some[: count - first])
        await store.namespaces(KAI, (), None, 99)  # the scripts are known from here on
        before = sent()
        asked = sent()
        await store.items(KAI, ("a", "07"), None, 5)
        assert len(await store.namespaces(KAI, ("a",), None, 99)) == 20
        costs.append(sent() - asked - (asked - before))
    assert abs(costs[1] - costs[0]) < 200


async def test_a_move_of_items_that_was_cut_short_is_done_again(
    store: Backend, server: Server, clock: Clock
) -> None:
    """Copied, and not yet removed: the copy is no item of the other tenant's own."""
    await store.change_items(KAI, [put(("a",), f"{n}", b"old", expires_at=9e9) for n in range(3)])
    for here, there in zip(item_keys(KAI), item_keys(NEW), strict=True):
        server.ask("RESTORE", there, 0, server.ask("DUMP", here))
    clock.now += 1
    await store.change_items(KAI, [put(("a",), "1", b"newer")])
    await store.move("tenant", "new")
    assert [place.key for place in await places(store, NEW)] == ["0", "1", "2"]
    assert await value(store, KAI, ("a",), "1") == b"newer"
    assert [place.key for place in await places(store, KAI)] == ["1"]


async def test_a_change_during_a_move_is_moved_too(
    store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.change_items(KAI, [put(("a",), f"{n}", b"old") for n in range(3)])
    scripts = store._scripts  # type: ignore[attr-defined]
    write = scripts.write
    meddled: list[bool] = []

    async def meddling(script: object, keys: object, arguments: object) -> object:
        if script is scripts.items_leave and not meddled:
            meddled.append(True)
            await store.change_items(KAI, [put(("a",), "0", b"new"), gone(("a",), "1")])
        return await write(script, keys, arguments)

    monkeypatch.setattr(scripts, "write", meddling)
    await store.move("tenant", "new")
    assert await places(store, KAI) == []
    assert [place.key for place in await places(store, NEW)] == ["0", "2"]
    item = await at(store, NEW, ("a",), "0")
    assert item is not None and (item.version, bytes(item.value)) == (2, b"new")


async def test_a_full_server_takes_what_is_left_of_a_list_together_with_what_goes_from_it(
    store: Backend, server: Server
) -> None:
    await store.change_items(KAI, [put(("a",), "list", b"[1,2]"), put(("a",), "1")])
    with server.full():
        assert await store.change_items(KAI, [put(("a",), "list", b"[2]"), gone(("a",), "1")])
    assert [place.key for place in await places(store, KAI)] == ["list"]


async def test_what_the_server_refuses_is_a_store_error(store: Backend, server: Server) -> None:
    await store.change_items(KAI, [put(("a",), "k")])
    with server.full():
        changed = store.change_items(KAI, [put(("a",), "k")])
        for work in (changed, store.add_usage("tenant", FACTS, ONE)):
            with pytest.raises(StoreFull, match="maxmemory"):
                await work
    server.ask("SET", item_keys(NEW)[0], "no hash")
    for look in (
        store.items_at(NEW, [Place(("a",), "k")]),
        store.change_items(NEW, [gone((), "")]),
    ):
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await look


async def test_a_day_of_usage_is_kept_for_four_hundred(store: Backend, server: Server) -> None:
    await store.add_usage("tenant", FACTS, ONE)
    (key,) = server.ask("KEYS", "*")
    assert KEPT_SECONDS - 5 <= int(server.ask("TTL", key)) <= KEPT_SECONDS == 400 * 24 * 3600
    await store.move("tenant", "new")
    (key,) = server.ask("KEYS", "*")
    assert KEPT_SECONDS - 5 <= int(server.ask("TTL", key)) <= KEPT_SECONDS
    assert await store.usage_of_days("new", [DAY]) == {FACTS: ONE}


async def test_usage_is_added_once_though_its_move_was_cut_short(
    store: Backend, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.add_usage("tenant", FACTS, ONE)
    scripts = store._scripts  # type: ignore[attr-defined]
    write = scripts.write

    async def cut(script: object, keys: object, arguments: object) -> object:
        done = await write(script, keys, arguments)
        raise StoreError(f"cut after {done}")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="cut after 1"):
        patch.setattr(scripts, "write", cut)
        await store.move("tenant", "new")
    assert await store.usage_of_days("new", [DAY]) == {FACTS: ONE}
    await store.add_usage("tenant", FACTS, ONE)
    await store.move("tenant", "new")
    assert await store.usage_of_days("new", [DAY]) == {FACTS: ONE + ONE}
    assert await store.usage_of_days("tenant", [DAY]) == {}
    assert len(server.ask("KEYS", "*")) == 1
