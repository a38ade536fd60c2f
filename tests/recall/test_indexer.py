"""The index is level with history, whatever happens to either."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from proxy.memory.archive import Page, Session
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import IndexBatch, IndexLookup, IndexMark, Owner
from proxy.recall.indexing import indexer as indexing
from proxy.recall.indexing import state as states
from proxy.recall.indexing.indexer import (
    BATCH,
    MARGIN,
    TRIES,
    Indexer,
)
from proxy.recall.indexing.state import MAX_BYTES_IN_LOOP, MAX_IN_LOOP
from proxy.stores.sqlite import rows
from tests.support.store.passages import KAI, TENANT, Memory, ids, said
from tests.support.waiting import PATIENCE

BOAT = "My boat is red."


async def test_what_is_new_is_indexed_once(remembering: Memory) -> None:
    key = await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"), indexed=False)
    assert await remembering.indexer.index_session(key) == 2
    assert await remembering.indexer.index_session(key) == 0
    await remembering.commit("a", said("x2", "My cat is black."), indexed=False)
    assert await remembering.indexer.index_session(key) == 1
    assert await remembering.indexed(KAI) == [("a", 1), ("a", 2), ("a", 3)]


async def test_a_session_that_is_not_there_is_no_work(remembering: Memory) -> None:
    assert await remembering.indexer.index_session(SessionKey(TENANT, "nowhere")) == 0
    assert (await remembering.store.lookup(KAI, (), 0)).revision == 0


async def test_to_catch_up_with_nothing_new_costs_three_looks_at_the_state(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    await remembering.indexer.catch_up(KAI)
    lookup, looked = remembering.store.lookup, list[Owner]()

    async def watched(owner: Owner, *rest: Any, **named: Any) -> IndexLookup:
        looked.append(owner)
        return await lookup(owner, *rest, **named)

    monkeypatch.setattr(remembering.store, "lookup", watched)
    assert await remembering.indexer.catch_up(KAI) == 0
    assert len(looked) == 3


async def test_a_session_without_an_owner_has_an_index_of_its_own(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT))
    assert await remembering.indexed(Owner(TENANT, session="a")) == [("a", 1)]
    assert await remembering.indexed(KAI) == []


async def test_a_session_that_gets_an_owner_is_in_the_owners_index_whole(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", BOAT))
    await remembering.commit("a", said("x2", "It is me.", user="kai"))
    assert await remembering.indexed(KAI) == [("a", 1), ("a", 2)]


async def test_more_messages_than_are_read_at_once_are_all_indexed(remembering: Memory) -> None:
    texts = [f"My boat {n} is red." for n in range(2 * BATCH + 1)]
    await remembering.commit("a", said("x1", *texts, user="kai"))
    assert await remembering.indexed(KAI) == [("a", n) for n in range(1, 2 * BATCH + 2)]


async def test_messages_of_which_few_fill_a_page_are_all_indexed(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "PAGE_BYTES", 1)
    texts = [f"My boat {n} is red." for n in range(5)]
    key = await remembering.commit("a", said("x1", *texts, user="kai"), indexed=False)
    assert await remembering.indexer.index_session(key) == 5
    assert await remembering.indexer.index_session(key) == 0
    assert await remembering.indexed(KAI) == [("a", n) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("texts", "here"),
    [
        pytest.param([BOAT] * MAX_IN_LOOP, True, id="a-few"),
        pytest.param([BOAT] * (MAX_IN_LOOP + 1), False, id="many"),
        pytest.param(["soup " * MAX_BYTES_IN_LOOP], False, id="a-large-one"),
    ],
)
async def test_what_takes_long_is_not_read_in_the_loop(
    remembering: Memory, texts: list[str], here: bool
) -> None:
    threads: set[int] = set()

    def own_text_of(wire: bytes) -> tuple[str, float]:
        threads.add(threading.get_ident())
        return "soup", 1.0

    key = await remembering.commit("a", said("x1", *texts), indexed=False)
    indexer = Indexer(remembering.store, remembering.store, own_text_of, remembering.clock)
    assert await indexer.index_session(key) == len(texts)
    assert len(threads) == 1 and (threading.get_ident() in threads) == here


async def test_large_messages_of_one_tenant_take_one_thread_at_a_time(remembering: Memory) -> None:
    begun, over = list[str](), threading.Event()

    def own_text_of(wire: bytes) -> tuple[str, float]:
        begun.append("many" if b"many" in wire else "one")
        assert begun[-1] == "one" or over.wait(PATIENCE)
        return "soup", 1.0

    indexer = Indexer(remembering.store, remembering.store, own_text_of, remembering.clock)
    many = [SessionKey(TENANT, f"many-{n}") for n in range(8)]
    for key in (*many, other := SessionKey("another", "one")):
        text = f"{key.session} " * MAX_BYTES_IN_LOOP
        assert await remembering.store.commit(key, said(f"x-{key.session}", text)) == "recorded"
    indexing_many = asyncio.gather(*map(indexer.index_session, many))
    async with asyncio.timeout(PATIENCE):
        assert await indexer.index_session(other) == 1
    assert begun.count("many") <= 1
    over.set()
    assert await indexing_many == [1] * len(many)


async def test_large_messages_are_indexed_like_small_ones(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", f"{BOAT} " + "soup " * 10_000, "Fine.", user="kai"))
    assert await remembering.indexed(KAI) == [("a", 1), ("a", 2)]
    assert "x1.0" in ids(await remembering.recall("What colour has my boat?"))


async def test_a_session_begun_anew_under_its_old_name_is_indexed_anew(
    remembering: Memory,
) -> None:
    key = await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    await remembering.commit("b", said("x2", "I had soup.", user="kai"))
    assert await remembering.store.delete(key)
    await remembering.commit("a", said("x3", "My cat is asleep.", user="kai"))
    assert (await remembering.indexed(KAI))[2:] == [("b", 1), ("a", 1)]
    assert ids(await remembering.recall("What colour has my boat?")) == []
    assert ids(await remembering.recall("What colour has my cat?")) == ["x3.0"]


async def test_a_session_begun_anew_unnoticed_is_noticed_by_its_mark(remembering: Memory) -> None:
    """The index kept its mark: it was written by somebody who had not heard of the deletion."""
    key = await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    mark = (await remembering.store.lookup(KAI, (), 0, "a")).mark
    assert mark is not None
    await remembering.store.delete(key)
    lookup = await remembering.store.lookup(KAI, (), 0)
    state = (await remembering.state(KAI)).passages
    stale = IndexBatch(lookup.revision, lookup.state, "a", mark, first=state)
    assert await remembering.store.write(KAI, stale)
    await remembering.commit("a", said("x3", "My cat is black.", "Fine.", user="kai"))
    assert ids(await remembering.recall("What colour has my cat?"))[0] == "x3.0"
    after = (await remembering.store.lookup(KAI, (), 0, "a")).mark
    assert after is not None and after != mark and after.seq == mark.seq


async def test_writers_at_once_index_nothing_twice(remembering: Memory) -> None:
    for n in range(5):
        await remembering.commit(
            f"s{n}", said(f"x{n}", BOAT, "Fine.", "More.", user="kai"), indexed=False
        )
    keys = [SessionKey(TENANT, f"s{n}") for n in range(5)]
    outcomes = await asyncio.gather(
        *(remembering.indexer.index_session(key) for key in [*keys, keys[0], keys[0], keys[1]]),
        remembering.indexer.catch_up(KAI),
        return_exceptions=True,
    )
    assert all(isinstance(each, int | StoreError) for each in outcomes), outcomes
    for key in keys:
        await remembering.indexer.index_session(key)
    assert sorted(await remembering.indexed(KAI)) == [
        (f"s{n}", seq) for n in range(5) for seq in (1, 2, 3)
    ]


async def test_writing_is_given_up_where_others_always_win(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await remembering.commit("a", said("x1", BOAT, user="kai"), indexed=False)
    tries = 0

    async def lose(owner: Owner, batch: IndexBatch) -> bool:
        nonlocal tries
        tries += 1
        return False

    monkeypatch.setattr(remembering.store, "write", lose)
    with pytest.raises(StoreError):
        await remembering.indexer.index_session(key)
    assert tries == TRIES


# Catching up


async def test_catching_up_indexes_all_that_was_missed(remembering: Memory) -> None:
    for n in range(3):
        await remembering.commit(f"s{n}", said(f"x{n}", BOAT, user="kai"), indexed=False)
    await remembering.commit("eves", said("x9", BOAT, user="eve"), indexed=False)
    assert await remembering.indexer.catch_up(KAI) == 3
    assert sorted(await remembering.indexed(KAI)) == [("s0", 1), ("s1", 1), ("s2", 1)]
    assert (await remembering.state(KAI)).caught_up_at == remembering.clock.now


async def test_catching_up_does_not_outdo_a_doubt_that_came_meanwhile(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old sessions are coming back: whoever has looked already has not seen them."""
    await remembering.commit("a", said("x1", BOAT, user="kai"))
    listed = remembering.store.sessions

    async def and_meanwhile(
        tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        page = await listed(tenant, user, after, limit)
        await remembering.indexer.recheck_sessions(KAI)
        return page

    monkeypatch.setattr(remembering.store, "sessions", and_meanwhile)
    await remembering.indexer.catch_up(KAI)
    assert (await remembering.state(KAI)).caught_up_at < 0
    monkeypatch.undo()
    await remembering.indexer.catch_up(KAI)
    assert (await remembering.state(KAI)).caught_up_at == remembering.clock.now


async def test_catching_up_again_looks_only_at_what_has_moved_since(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await remembering.commit("old", said("x1", BOAT, user="kai", at=1000), indexed=False)
    await remembering.indexer.catch_up(KAI)
    remembering.clock.now += 10 * MARGIN
    await remembering.indexer.catch_up(KAI)
    await remembering.commit("new", said("x2", BOAT, user="kai", at=7900), indexed=False)
    seen: list[str] = []
    real = remembering.store.unindexed

    async def unindexed(key: SessionKey, *rest: object) -> object:
        seen.append(key.session)
        return await real(key, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(remembering.store, "unindexed", unindexed)
    assert await remembering.indexer.catch_up(KAI) == 1
    assert set(seen) == {"new"}


async def test_catching_up_with_a_session_of_nobody_indexes_that(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT), indexed=False)
    assert await remembering.indexer.catch_up(Owner(TENANT, session="a")) == 1


# Making it anew


async def test_an_index_made_anew_is_as_good_as_the_first(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    await remembering.commit("b", said("x2", "Always answer in French.", user="kai"))
    before = ids(await remembering.recall("What colour has my boat?"))
    assert await remembering.indexer.rebuild(KAI) == 3
    assert ids(await remembering.recall("What colour has my boat?")) == before
    assert sorted(await remembering.indexed(KAI)) == [("a", 1), ("a", 2), ("b", 1)]


async def test_a_wish_that_was_removed_stays_so_in_an_index_made_anew(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", "Always answer in French.", user="kai"))
    assert ids(await remembering.recall("Hi, what is new?")) == ["x1.0:0"]
    await remembering.indexer.dismiss(KAI, "x1.0:0")
    await remembering.indexer.rebuild(KAI)
    assert ids(await remembering.recall("Hi, what is new?")) == []


async def test_an_index_of_another_format_is_made_anew(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await remembering.commit("a", said("x1", BOAT, user="kai"))
    lookup = await remembering.store.lookup(KAI, (), 0)
    other = IndexBatch(lookup.revision, b"[999]", "a", IndexMark(0, 1, 7), first=1)
    assert await remembering.store.write(KAI, other)
    assert states.read_state(b"[999]") is None
    assert await remembering.indexer.index_session(key) == 1
    assert await remembering.indexed(KAI) == [("a", 1)]


async def test_whoever_asks_and_has_said_nothing_leaves_nothing_behind(
    remembering: Memory,
) -> None:
    """Else each name under which somebody asks, and is refused upstream, would stay for ever."""
    assert await remembering.indexer.catch_up(KAI) == 0
    assert (await remembering.store.lookup(KAI, (), 0)).revision == 0


async def test_an_index_that_is_mostly_of_sessions_that_are_gone_is_made_anew(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person whose chats expire has as much to find as ever, and not an ever larger index."""
    monkeypatch.setattr(indexing, "MIN_PASSAGES_TO_REBUILD", 4)
    for n in range(5):
        await remembering.commit(f"s{n}", said(f"x{n}", BOAT, "Fine.", user="kai"))
    for n in range(3):
        await remembering.store.delete(SessionKey(TENANT, f"s{n}"))
    assert await remembering.indexer.catch_up(KAI) == 4
    assert (await remembering.state(KAI)).passages == 4
    assert sorted(await remembering.indexed(KAI)) == [("s3", 1), ("s3", 2), ("s4", 1), ("s4", 2)]
    assert ids(await remembering.recall("What colour has my boat?")) == ["x4.0"]


async def test_what_was_dismissed_stays_so_where_a_rebuild_is_cut_off(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a wish that its person has removed would be pinned again."""
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    await remembering.indexer.dismiss(KAI, "x1.0")

    async def killed(owner: Owner, batch: IndexBatch) -> bool:
        raise StoreError("gone")

    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(remembering.store, "write", killed)
        await remembering.indexer.rebuild(KAI)
    assert await remembering.indexed(KAI) == []
    await remembering.indexer.catch_up(KAI)
    assert len(await remembering.indexed(KAI)) == 2
    assert await remembering.indexer.dismissed(KAI) == ("x1.0",)


async def test_an_index_of_which_nothing_is_left_is_not_begun_anew(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", BOAT, "Fine.", user="kai"))
    await remembering.store.delete(SessionKey(TENANT, "a"))
    assert await remembering.indexer.rebuild(KAI) == 0
    assert (await remembering.store.lookup(KAI, (), 0)).revision == 0


async def test_sessions_are_counted_again_once_an_index_is_twice_as_large(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MIN_PASSAGES_TO_REBUILD", 4)
    counts: list[int] = []
    for n in range(8):
        await remembering.commit(f"s{n}", said(f"x{n}", BOAT, "Fine.", user="kai"))
        await remembering.indexer.catch_up(KAI)
        counts.append((await remembering.state(KAI)).counted_passages)
    assert counts == [0, 4, 4, 4, 4, 12, 12, 12]
    assert len(await remembering.indexed(KAI)) == 16
