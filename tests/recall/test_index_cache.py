"""What is kept in mind of an index is what it says, whoever writes to it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from proxy.chat.message import typed_text_of
from proxy.memory.model import SessionKey
from proxy.recall import index_cache
from proxy.recall.index import IndexLookup, Owner, Rows, WholeIndex
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.query.words import analyse
from proxy.recall.ranking.packing import read_rows
from proxy.recall.term_cache import NEWEST
from tests.support.store.passages import KAI, TENANT, Memory, said

EVE = Owner(TENANT, user="eve")
BOAT, OARS, SOUP, NONE = (
    next(iter(analyse(text, 0.0).terms)) for text in ("boat", "oars", "soup", "bells")
)
TERMS = (BOAT, NONE, SOUP, OARS)


class Watched:
    """What is kept in mind, how many rows were read for it, and of how many terms postings, or
    "all"."""

    def __init__(self, memory: Memory, rows: int = 1_000, size: int = 100_000) -> None:
        self.memory, self.read, self.looked = memory, 0, list[int | str]()
        self.known = IndexCache(self, rows, size)  # type: ignore[arg-type]
        self.here = Indexer(
            memory.store, memory.store, typed_text_of, memory.clock, on_write=self.known.on_write
        )

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        self.looked.append(len(terms))
        return await self.memory.store.lookup(owner, terms, newest, session=session)

    async def whole_index(
        self, owner: Owner, max_terms: int, session: str = ""
    ) -> WholeIndex | None:
        self.looked.append("all")
        return await self.memory.store.whole_index(owner, max_terms, session)

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        self.read += len(numbers)
        return await self.memory.store.rows(owner, numbers)

    async def asked(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        lookup, state = await self.known.lookup(owner, ())
        assert state is not None
        return await self.known.rows(owner, np.array(numbers, np.uint32), state, lookup.revision)

    async def check(self, owner: Owner, numbers: Sequence[int]) -> None:
        """What is said of these rows is what the store says."""
        found, expected = (
            await self.asked(owner, numbers),
            await self.memory.store.rows(owner, numbers),
        )
        assert found.data == expected.data
        for session in set(read_rows(found.data)["session"].tolist()) - {0}:
            assert found.sessions.get(session) == expected.sessions.get(session)

    async def check_terms(self, owner: Owner, terms: Sequence[bytes], session: str = "a") -> None:
        """And what is said of these terms."""
        found = await self.known.lookup(owner, terms, session)
        assert found.lookup == await self.memory.store.lookup(owner, terms, NEWEST, session=session)

    async def says(
        self, session: str, exchange: str, text: str = "A boat.", *, user: str, here: bool
    ) -> None:
        key = await self.memory.commit(session, said(exchange, text, user=user), indexed=False)
        await (self.here if here else self.memory.indexer).index_session(key)


@pytest.fixture
def watched(remembering: Memory) -> Watched:
    return Watched(remembering)


async def test_what_was_read_or_written_here_is_not_read_again(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=False)
    await watched.says("b", "x2", user="kai", here=True)
    await watched.check(KAI, [0, 1])
    assert watched.read == 2
    await watched.says("b", "x3", user="kai", here=True)
    await watched.says("c", "x4", user="kai", here=True)
    await watched.check(KAI, [0, 1, 2, 3])
    assert watched.read == 2


async def test_of_an_index_that_was_begun_here_nothing_is_read(watched: Watched) -> None:
    for n, text in enumerate(("boat", "soup", "boat oars")):
        await watched.says("a", f"x{n}", text, user="kai", here=True)
        await watched.check(KAI, range(n + 1))
        await watched.check_terms(KAI, TERMS)
    assert (watched.read, set(watched.looked)) == (0, {0})


async def test_what_another_process_writes_is_read(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=True)
    await watched.check(KAI, [0])
    await watched.says("b", "x2", user="kai", here=False)
    await watched.check(KAI, [0, 1])
    await watched.says("c", "x3", user="kai", here=True)
    await watched.check(KAI, [0, 1, 2])


async def test_a_session_that_is_dropped_has_no_name_any_more(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=True)
    await watched.says("b", "x2", user="kai", here=True)
    await watched.check(KAI, [0, 1])
    await watched.memory.store.delete(SessionKey(TENANT, "a"))
    await watched.memory.store.drop_session(KAI, "a")
    assert "a" not in (await watched.asked(KAI, [0, 1])).sessions.values()


async def test_an_index_that_was_made_anew_is_another(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=True)
    await watched.says("b", "x2", user="kai", here=True)
    await watched.check(KAI, [0, 1])
    watched.memory.clock.now += 1
    await watched.memory.store.delete(SessionKey(TENANT, "a"))
    await watched.here.rebuild(KAI)
    await watched.check(KAI, [0, 1])


async def test_numbers_that_no_passage_has_are_rows_of_nothing(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=True)
    for _ in range(2):
        await watched.check(KAI, [0, 1, 2, 70])


async def test_a_few_owners_are_kept_in_mind_and_none_with_very_many(remembering: Memory) -> None:
    watched = Watched(remembering, rows=3)
    for n in range(2):
        await watched.says("a", f"x{n}", user="kai", here=True)
        await watched.says("b", f"y{n}", user="eve", here=True)
    for _ in range(2):
        await watched.check(KAI, [0, 1])
        await watched.check(EVE, [0, 1])
    assert watched.read == 8
    for n in range(2, 4):
        await watched.says("a", f"x{n}", user="kai", here=True)
    for _ in range(2):
        await watched.check(KAI, [0, 3])
    assert watched.read == 12


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_written_and_forgotten(watched: Watched, seed: int) -> None:
    random, store = Random(seed), watched.memory.store
    for step in range(60):
        session = random.choice("abc")
        watched.memory.clock.now += 1
        match random.randrange(8):
            case 0:
                await store.delete(SessionKey(TENANT, session))
                await store.drop_session(KAI, session)
            case 1:
                await store.drop(KAI)
            case 2:
                watched.known.clear()
            case kind:
                text = " ".join(random.sample(["boat", "oars", "soup"], 2))
                await watched.says(session, f"x{step}", text, user="kai", here=kind > 4)
        await watched.check(KAI, sorted(random.sample(range(40), random.randint(1, 12))))
        await watched.check_terms(KAI, random.sample(TERMS, random.randint(0, 4)), session)


async def test_postings_that_are_known_are_not_read_again(watched: Watched) -> None:
    await watched.says("a", "x1", "boat", user="kai", here=False)
    await watched.check_terms(KAI, TERMS)
    for n in range(3):
        await watched.says("b", f"y{n}", "boat soup", user="kai", here=True)
        await watched.check_terms(KAI, (SOUP, BOAT))
    await watched.check_terms(KAI, TERMS)
    assert watched.looked == [4, 0, 0, 0, 0]


async def test_only_what_is_not_known_is_read(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "SMALL_INDEX", 0)
    await watched.says("a", "x1", "boat soup", user="kai", here=False)
    await watched.check_terms(KAI, (BOAT,))
    await watched.check_terms(KAI, (SOUP, BOAT, NONE))
    assert watched.looked == [1, 2]


async def test_a_small_index_is_read_whole_where_its_owner_asks_a_third_time_soon(
    watched: Watched,
) -> None:
    for session in "abc":
        await watched.says(session, f"{session}1", "boat soup", user="kai", here=False)
    await watched.check_terms(KAI, (BOAT,))
    await watched.check_terms(KAI, (SOUP, BOAT))
    await watched.check_terms(KAI, (SOUP, BOAT, NONE))
    await watched.says("d", "x1", "oars", user="kai", here=True)
    await watched.check_terms(KAI, TERMS)
    assert watched.looked == [1, 1, "all", 0]
    await watched.says("e", "x2", "oars", user="kai", here=False)
    await watched.check_terms(KAI, TERMS)


async def test_an_owner_who_asks_seldom_has_no_index_read_whole(remembering: Memory) -> None:
    """Else each look would read a whole index, and let go of that of another."""
    watched = Watched(remembering, size=2_000)
    owners = [Owner(TENANT, user=f"u{n}") for n in range(20)]
    for owner in owners:
        await watched.says(owner.user, owner.user, "boat soup", user=owner.user, here=False)
    for term in (BOAT, SOUP, OARS):
        for owner in owners:
            await watched.check_terms(owner, (term,), owner.user)
    assert "all" not in watched.looked


async def test_what_was_just_seen_is_not_asked_for_again(watched: Watched) -> None:
    await watched.says("a", "x1", "boat soup", user="kai", here=True)
    seen = await watched.known.lookup(KAI, (BOAT,), "a")
    again = await watched.known.lookup(KAI, TERMS, "a", seen.lookup)
    assert watched.looked == [0]
    assert again.lookup == await watched.memory.store.lookup(KAI, TERMS, NEWEST, session="a")


async def test_who_is_not_the_only_one_to_write_asks_for_all_at_once(watched: Watched) -> None:
    await watched.says("a", "x1", "boat", user="kai", here=False)
    await watched.check_terms(KAI, TERMS)
    for n in range(3):
        await watched.says("b", f"y{n}", "boat soup", user="kai", here=False)
        await watched.check_terms(KAI, TERMS)
    assert watched.looked == [4, *(0, 4), 4, 4]
    await watched.check_terms(KAI, TERMS)
    await watched.check_terms(KAI, TERMS)
    assert watched.looked[-2:] == [4, 0]


async def test_an_index_that_lost_what_was_written_is_read_anew(watched: Watched) -> None:
    """As after a failover: another index of the same revision, and of as many passages."""
    for text in ("boat", "soup"):
        watched.memory.clock.now += 1
        await watched.memory.store.drop(KAI)
        await watched.says("a", f"x{text}", text, user="kai", here=False)
        await watched.check_terms(KAI, TERMS)
        await watched.check(KAI, [0])
        await watched.memory.store.delete(SessionKey(TENANT, "a"))


async def test_postings_are_kept_within_a_bound(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "SMALL_INDEX", 0)
    watched = Watched(remembering, size=4_000)
    for n in range(3):
        for user in ("kai", "eve"):
            await watched.says(user, f"{user}{n}", "boat soup", user=user, here=True)
    for owner in (KAI, EVE, KAI):
        await watched.check_terms(owner, (BOAT, SOUP, OARS), owner.user)
    assert watched.looked == [3, 3, 3]
    await watched.check_terms(KAI, (BOAT, SOUP, OARS), "kai")
    assert watched.looked[3:] == [0]
    many = tuple(bytes([n] * 8) for n in range(20))
    for _ in range(2):
        await watched.check_terms(KAI, many, "kai")
    assert watched.looked[4:] == [20, 20]


async def test_no_terms_are_kept_once_anything_is_erased(watched: Watched) -> None:
    await watched.says("a", "x1", "boat", user="kai", here=True)
    await watched.check_terms(KAI, TERMS)
    await watched.check(KAI, [0])
    watched.known.clear_terms("another")
    assert "terms: 3," in repr(watched.known)
    watched.known.clear_terms(KAI.tenant)
    assert "terms: 0," in repr(watched.known)
    await watched.check(KAI, [0])
    await watched.check_terms(KAI, TERMS)
    assert (watched.read, watched.looked[-1]) == (0, len(TERMS))


async def test_terms_that_are_forgotten_while_others_are_read_are_read_too(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks while somebody erases something finds what there is all the same."""
    await watched.says("a", "x1", user="kai", here=True)
    for _ in range(2):
        await watched.check_terms(KAI, (BOAT,))
    lookup = watched.lookup

    async def meanwhile(
        owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        found = await lookup(owner, terms, newest, session)
        watched.known.clear_terms(KAI.tenant)
        return found

    monkeypatch.setattr(watched, "lookup", meanwhile)
    await watched.check_terms(KAI, TERMS)
    await watched.check_terms(KAI, (BOAT,))
