"""What a Redis that evicts keys may cost: what it threw away, and nothing of others."""

from __future__ import annotations

import pytest

from proxy.memory.items import ItemOwner, Place
from proxy.memory.model import LoadOptions, SessionKey, WorkRequest
from proxy.stores.open import Backend
from proxy.stores.redis.base import session_keys
from proxy.stores.redis.items import LISTED_AT_ONCE, item_keys
from proxy.stores.redis.work import QUEUE_KEYS, READ_TRIES
from tests.support.clock import Clock
from tests.support.processes.redis import Server
from tests.support.store.commits import chat
from tests.support.store.shelves import gone, places, put, value

KEY = SessionKey("tenant", "session")
KAI = ItemOwner("tenant", "kai")
ALL = LoadOptions(profile="default", whole=True)
DUE = WorkRequest(kind="summary", profile="p", due_at=1.0)


@pytest.fixture
def url(server: Server) -> str:
    return server.url


# Sessions


async def test_whoever_erases_finds_sessions_that_have_lost_their_heads(
    store: Backend, server: Server
) -> None:
    """Also behind others who have looked at the list."""
    for name, whose in (("a", "kai"), ("b", "kai"), ("c", "eve")):
        await store.commit(SessionKey("tenant", name), chat("x1", user=whose))
    heads = {name: session_keys(SessionKey("tenant", name))[0] for name in "abc"}
    server.ask("DEL", heads["b"], heads["c"])
    for user in ("kai", None):
        page = await store.sessions("tenant", user, None, 9)
        assert [session.id for session in page.items] == ["a"]
    assert await store.repair_session_list("tenant", "kai") == ["b"]
    assert not await store.delete(SessionKey("tenant", "b"))
    await store.clear("tenant", "kai")
    assert await store.repair_session_list("tenant", "kai") == []
    assert (await store.load(SessionKey("tenant", "a"), ALL)).exists


async def test_a_session_of_anothers_that_a_list_names_is_not_the_persons(
    store: Backend, server: Server
) -> None:
    """The name was kept until somebody else began anew with it."""
    await store.commit(KEY, chat("x1", user="kai"))
    server.ask("DEL", session_keys(KEY)[0])
    await store.commit(KEY, chat("x2", user="eve"))
    assert await store.repair_session_list("tenant", "kai") == []
    assert (await store.sessions("tenant", "kai", None, 9)).items == ()


# The queue of work


@pytest.mark.parametrize("without", [(), ("others",)])
async def test_work_that_is_lost_is_not_in_the_way_of_other_work(
    store: Backend, server: Server, without: tuple[str, ...]
) -> None:
    for number in range(7):
        await store.enqueue(SessionKey("tenant", f"{number}"), DUE)
    due, pieces = QUEUE_KEYS
    server.ask("DEL", pieces)
    await store.enqueue(KEY, WorkRequest(kind="summary", profile="p", due_at=2.0))
    assert [work.session for work in await store.waiting(9.0, 2, without)] == [KEY.session]
    assert server.ask("ZRANGE", due, 0, -1) == [b"summary:tenant:session"]


async def test_of_much_work_that_is_lost_one_look_forgets_some(
    store: Backend, server: Server
) -> None:
    due, pieces = QUEUE_KEYS
    for number in range(READ_TRIES + 3):
        await store.enqueue(SessionKey("tenant", f"{number}"), DUE)
    server.ask("DEL", pieces)
    assert [await store.waiting(9.0, 1), server.ask("ZCARD", due)] == [[], 3]


@pytest.mark.parametrize("state", ["waits", "failed", "held"])
async def test_work_of_which_is_lost_when_it_is_due_is_done_once_it_is_asked_for(
    store: Backend, server: Server, state: str
) -> None:
    await store.enqueue(KEY, DUE)
    if state != "waits":
        (work,) = await store.waiting(9.0, 9)
        held = await store.claim(work, 9.0, 60.0)
        assert held is not None
        if state == "failed":
            await store.postpone(held, 100.0, failed=True)
    server.ask("DEL", QUEUE_KEYS[0])
    assert not await store.waiting(1e9, 9)
    await store.enqueue(KEY, DUE)
    (work,) = await store.waiting(9.0, 9)
    assert (work.requests, work.attempts) == (2, int(state == "failed"))
    assert await store.claim(work, 9.0, 60.0) is not None


# Items


MANY = 10 * LISTED_AT_ONCE
"""More than a small hash has, which is read at once."""


async def test_items_whose_places_are_lost_are_found_and_removed_as_before(
    store: Backend, server: Server
) -> None:
    await store.change_items(KAI, [put(("a",), f"{n:04d}") for n in range(MANY)])
    await store.change_items(KAI, [put(("b",), "k")])
    listed = item_keys(KAI)[1]
    server.ask("DEL", listed)
    assert await store.people("tenant") == ["kai"]
    assert await store.namespaces(KAI, (), None, 9) == [("a",), ("b",)]
    server.ask("DEL", listed)
    assert await places(store, KAI, ("b",)) == [Place(("b",), "k")]
    server.ask("DEL", listed)
    await store.change_items(KAI, [put(("b",), "new"), gone(("a",), "0000")])
    assert await store.drop_items(KAI, ("a",)) == MANY - 1
    server.ask("DEL", listed)
    assert await store.drop_items(KAI, ()) == 2
    assert server.ask("KEYS", "*") == []


async def test_a_shelf_that_ends_does_so_with_places_that_were_listed_again(
    store: Backend, server: Server, clock: Clock
) -> None:
    await store.change_items(KAI, [put(("a",), "k", expires_at=clock.now + 100)])
    listed = item_keys(KAI)[1]
    server.ask("DEL", listed)
    assert len(await places(store, KAI)) == 1
    assert 150 <= server.ask("TTL", listed) <= 160


@pytest.mark.parametrize("lost", [0, 2])
async def test_of_a_shelf_that_has_lost_items_nothing_is_left_once_it_is_dropped(
    store: Backend, server: Server, clock: Clock, lost: int
) -> None:
    """Not the names either: of items that are lost they are in two lists yet."""
    await store.change_items(KAI, [put(("a",), "k", expires_at=clock.now + 100)])
    keys = item_keys(KAI)
    server.ask("DEL", keys[lost])
    await store.change_items(KAI, [put(("a",), "new")])
    server.ask("DEL", keys[1])
    assert await store.drop_items(KAI, ()) == (1 if lost == 0 else 2)
    assert server.ask("KEYS", "*") == []


async def test_items_whose_places_are_lost_move_with_their_tenant(
    store: Backend, server: Server
) -> None:
    await store.change_items(KAI, [put(("a",), "k", b"1")])
    server.ask("DEL", item_keys(KAI)[1])
    await store.move("tenant", "new")
    assert await value(store, ItemOwner("new", "kai"), ("a",), "k") == b"1"
    assert server.ask("KEYS", "mp:{tenant*") == []


async def test_places_are_listed_again_by_a_server_that_is_full(
    store: Backend, server: Server
) -> None:
    await store.change_items(KAI, [put(("a",), "k")])
    server.ask("DEL", item_keys(KAI)[1])
    with server.full():
        assert await store.drop_items(KAI, ()) == 1
