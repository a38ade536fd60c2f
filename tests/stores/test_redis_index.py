"""What only the Redis store promises of its indexes: one slot, no key left, all alive together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial

import pytest
from redis.crc import key_slot

from proxy.memory.archive import Details
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError, StoreFull, StoreTimeout
from proxy.recall.index import IndexLookup, Owner, owner_of
from proxy.recall.indexing.indexer import Indexer, drop_index, seqs_by_session
from proxy.recall.indexing.state import State
from proxy.stores.open import Backend, open_store
from proxy.stores.redis.base import list_keys, session_keys
from proxy.stores.redis.index import KEY_NAMES, index_keys, term_keys
from tests.support.processes.redis import Server, wait_until
from tests.support.store.archives import revise
from tests.support.store.batches import batch, term
from tests.support.store.commits import chat
from tests.support.store.passages import whole
from tests.support.waiting import PATIENCE

KAI, EVE = Owner("tenant", user="kai"), Owner("tenant", user="eve")
HOUR = 3_600_000
WORDS = 2500
"""More terms than one script renews or removes."""


@pytest.fixture
async def store(server: Server) -> AsyncIterator[Backend]:
    store = open_store(server.url, timeout=PATIENCE, commit_timeout=PATIENCE)
    await store.open()
    yield store
    await store.close()


def lives(server: Server) -> dict[bytes, int]:
    """All keys, and how long they live (ms, -1 for ever)."""
    with server.client() as client:
        keys = client.keys("*")
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.pttl(key)
        return dict(zip(keys, pipeline.execute(), strict=True))


def together(found: dict[bytes, int], seconds: int) -> bool:
    """Whether the index lives so long, and all of its keys somewhat longer."""
    meta = found[index_keys(KAI)[0]]
    rest = [life for key, life in found.items() if key != index_keys(KAI)[0]]
    slack = 10_000
    return (
        seconds * 1000 - slack < meta <= seconds * 1000
        and meta + HOUR - slack < min(rest)
        and max(rest) < meta + HOUR + slack
    )


def _part(name: str) -> bytes:
    return index_keys(KAI)[KEY_NAMES.index(name.encode())]


async def fill(store: Backend, owner: Owner = KAI, ttl: int = 0) -> None:
    assert await store.write(owner, batch(0, [range(WORDS)], ttl=ttl))
    await store.put_vectors(owner, "model", 4, {0: b"1234"})
    await store.put_vectors(owner, "another: {model}", 4, {0: b"1234"})


async def test_all_keys_of_an_index_share_a_slot_with_what_it_is_of(
    store: Backend, server: Server
) -> None:
    await fill(store)
    assert len(lives(server)) == WORDS + 7
    assert {key_slot(key) for key in lives(server)} == {key_slot(list_keys("tenant", "kai")[0])}
    server.ask("FLUSHALL")
    await fill(store, Owner("tenant", session="s"))
    of_session = session_keys(SessionKey("tenant", "s"))
    assert {key_slot(key) for key in lives(server)} == {key_slot(of_session[0])}


async def test_a_dropped_index_leaves_no_key(store: Backend, server: Server) -> None:
    await fill(store)
    await store.drop(KAI)
    assert lives(server) == {}


async def test_of_an_index_on_a_full_server_sessions_and_vectors_can_be_erased_and_all_of_it(
    store: Backend, server: Server
) -> None:
    await fill(store)
    with server.full():
        with pytest.raises(StoreFull):
            await store.put_vectors(KAI, "model", 4, {0: b"5678"})
        await store.put_vectors(KAI, "model", 4, {0: bytes(4)})
        assert await store.vectors(KAI, "model", 4, 0, 1) == bytes(4)
        before = (await store.lookup(KAI, (), 0)).revision
        await store.drop_session(KAI, "s")
        await store.drop_session(KAI, "of which it has nothing")
        assert (await store.lookup(KAI, (), 0)).revision == before + 2
        await store.drop(KAI)
    assert lives(server) == {}


async def test_a_deleted_session_leaves_no_key(store: Backend, server: Server) -> None:
    await store.commit(SessionKey("tenant", "s"), chat("x1"))
    await fill(store, Owner("tenant", session="s"))
    await store.delete(SessionKey("tenant", "s"))
    assert lives(server) == {}


async def test_what_an_index_consists_of_lives_as_long_as_itself(
    store: Backend, server: Server
) -> None:
    await fill(store, ttl=1000)
    assert together(lives(server), 2000)
    await store.write(KAI, batch(1, [["new"]], first=1, ttl=1000))
    await store.put_vectors(KAI, "third", 4, {0: b"1234"})
    assert together(lives(server), 2000)


async def test_half_way_through_its_life_an_index_is_renewed(
    store: Backend, server: Server
) -> None:
    await fill(store, ttl=1000)
    await store.write(KAI, batch(1, [["new"]], first=1, ttl=1900))
    assert together(lives(server), 2000)
    await store.write(KAI, batch(2, [["newer"]], first=2, ttl=2100))
    assert together(lives(server), 4200)
    await store.write(KAI, batch(3, [["newest"]], first=3, ttl=10))
    assert together(lives(server), 4200)


async def test_an_index_that_is_to_live_for_ever_does(store: Backend, server: Server) -> None:
    await fill(store, ttl=1000)
    await store.write(KAI, batch(1, [["new"]], first=1, ttl=0))
    assert set(lives(server).values()) == {-1}
    await store.write(KAI, batch(2, [["newer"]], first=2, ttl=1000))
    assert set(lives(server).values()) == {-1}


async def test_how_long_an_index_lives_is_said_by_batches_with_passages(
    store: Backend, server: Server
) -> None:
    await store.write(KAI, batch(0, []))
    assert set(lives(server).values()) == {-1}
    await store.write(KAI, batch(1, [["a"]], ttl=1000))
    assert together(lives(server), 2000)
    await store.write(KAI, batch(2, [], first=1, ttl=0))
    await store.write(KAI, batch(3, [], first=1, ttl=10_000))
    assert together(lives(server), 2000)


@pytest.mark.parametrize(
    ("user", "before", "ttl", "life"),
    [
        *[(user, 1_000, 0, -1) for user in ("kai", None)],
        *[(user, 1_000, 5_000, 10_000) for user in ("kai", None)],
        ("kai", 1_000, 100, 2_000),
        (None, 1_000, 100, 200),
        ("kai", 0, 100, -1),
        (None, 0, 100, 200),
    ],
)
async def test_an_index_lives_as_long_as_a_session_is_to_live_now(
    store: Backend, server: Server, user: str | None, before: int, ttl: int, life: int
) -> None:
    """Twice as long, as ever; a person's not shorter than it did: they may have other sessions."""
    key = SessionKey("tenant", "session")
    owner = owner_of(key, user)
    await store.commit(key, chat("x1", user=user, ttl=before))
    await fill(store, owner, ttl=before)
    assert await revise(store, key, details=Details(ttl=ttl))
    found = [server.ask("PTTL", name) for name in index_keys(owner) + term_keys(owner, [term(1)])]
    if life > 0:
        assert life * 1000 - 10_000 < found[0] <= life * 1000
        assert min(found[1:]) > found[0]
    else:
        assert set(found) == {life}


async def test_a_renewal_cut_short_is_done_again(store: Backend, server: Server) -> None:
    await fill(store, ttl=1000)
    meta, *_ = index_keys(KAI)
    server.ask("PEXPIRE", term_keys(KAI, [term(WORDS - 1)])[0], 500_000)
    server.ask("PEXPIRE", meta, 500_000)
    await store.write(KAI, batch(1, [["new"]], first=1, ttl=1000))
    assert together(lives(server), 2000)


async def test_what_is_left_of_an_index_is_no_part_of_its_successor(
    store: Backend, server: Server
) -> None:
    await fill(store, ttl=1000)
    server.ask("PEXPIRE", index_keys(KAI)[0], 1)
    wait_until(lambda: not server.ask("EXISTS", index_keys(KAI)[0]), "expiry")
    assert await store.lookup(KAI, [], 9, "session") == IndexLookup()
    assert await store.write(KAI, batch(0, [["a"]]))
    assert len(lives(server)) == 5


@pytest.mark.parametrize("lost", ["rows", "vocabulary", "marks"])
async def test_an_index_that_has_lost_a_part_is_made_anew_and_keeps_what_it_was_told(
    store: Backend, server: Server, lost: str
) -> None:
    """A server may evict keys; what is asked meanwhile is looked for without that part."""
    indexer = Indexer(store, store, whole, time.time)
    sessions = [SessionKey("tenant", name) for name in ("s", "t")]
    for key in sessions:
        await store.commit(key, chat("x1", user="kai"))
    await indexer.catch_up(KAI)
    await indexer.dismiss(KAI, "tea")
    server.ask("DEL", _part(lost))
    assert (await store.whole_index(KAI, 1000) is None) == (lost == "vocabulary")
    await store.commit(sessions[0], chat("x2", user="kai"))
    assert await indexer.index_session(sessions[0]) == 4
    assert await indexer.dismissed(KAI) == ("tea",)
    assert await indexer.catch_up(KAI) == 2
    assert {name: len(seqs) for name, seqs in (await seqs_by_session(store, KAI)).items()} == {
        "s": 4,
        "t": 2,
    }


async def test_an_index_that_has_forgotten_all_sessions_has_lost_none(
    store: Backend, server: Server
) -> None:
    assert await store.write(KAI, batch(0, [["a"]]))
    await store.drop_session(KAI, "session")
    assert await store.write(KAI, batch(2, [["b"]], first=1))


async def test_an_index_without_terms_has_lost_none(store: Backend, server: Server) -> None:
    assert await store.write(KAI, batch(0, [()]))
    assert await store.write(KAI, batch(1, [()], first=1))
    await store.drop(KAI)
    assert lives(server) == {}


@pytest.mark.parametrize("cut_short", [False, True])
async def test_an_index_whose_vocabulary_is_lost_is_dropped_without_a_rest(
    store: Backend, server: Server, cut_short: bool
) -> None:
    await fill(store)
    await fill(store, EVE)
    server.ask("DEL", _part("vocabulary"), *([_part("meta")] if cut_short else ()))
    await store.drop(KAI)
    left = lives(server)
    assert len(left) == WORDS + 7 and _part("rows") not in left
    await store.drop(EVE)
    assert lives(server) == {}


@pytest.mark.parametrize("again", [False, True])
async def test_an_index_that_has_lost_the_names_of_its_vectors_is_dropped_with_them(
    store: Backend, server: Server, again: bool
) -> None:
    """Also when it was made anew in between."""
    indexer, key = Indexer(store, store, whole, time.time), SessionKey("tenant", "s")
    await store.commit(key, chat("x1", user="kai"))
    await indexer.index_session(key)
    for name in ("old: {m}/4", "m/4"):
        await indexer.update(KAI, partial(State.with_vectors, name=name, end=2))
        await store.put_vectors(KAI, name, 4, {0: b"1234", 1: b"5678"})
    server.ask("DEL", _part("models"))
    if again:
        await indexer.rebuild(KAI)
    await drop_index(store, KAI)
    assert server.ask("KEYS", "*:ui:*") == []


async def test_scripts_are_sent_again_when_the_server_has_lost_them(
    store: Backend, server: Server
) -> None:
    await store.commit(SessionKey("tenant", "s"), chat("x1", user="kai"))
    server.ask("SCRIPT", "FLUSH")
    assert len(await store.passages("tenant", "kai", {"s": [1, 2], "t": [1]})) == 2
    server.ask("SCRIPT", "FLUSH")
    assert await store.write(KAI, batch(0, [["a"]]))


async def test_errors_are_store_errors(server: Server) -> None:
    store = open_store(server.url, timeout=1, commit_timeout=1)
    server.ask("SET", index_keys(KAI)[0], "not a hash")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        await store.lookup(KAI, [], 1)
    with server.paused():
        for work in (store.lookup(KAI, [], 1), store.write(KAI, batch(0, [])), store.drop(KAI)):
            with pytest.raises(StoreTimeout):
                await work
    await store.close()
