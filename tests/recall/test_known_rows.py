"""Rows that are kept in mind are the rows of the index, whoever writes to it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest

from proxy.chat.message import text_of
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner, Rows
from proxy.recall.indexing.indexer import Indexer
from proxy.recall.indexing.state import read_state
from proxy.recall.known_rows import KnownRows
from proxy.recall.ranking.packing import read_rows
from tests.support.store.passages import KAI, TENANT, Memory, said

EVE = Owner(TENANT, user="eve")


class Watched:
    """Rows kept in mind, and how many were read for them."""

    def __init__(self, memory: Memory, most: int = 1_000) -> None:
        self.memory, self.read = memory, 0
        self.known = KnownRows(self, most)  # type: ignore[arg-type]
        self.here = Indexer(
            memory.store, memory.store, text_of, memory.clock, on_write=self.known.written
        )

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        self.read += len(numbers)
        return await self.memory.store.rows(owner, numbers)

    async def asked(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        look = await self.memory.store.look(owner, (), 0)
        state = read_state(look.state)
        assert state is not None
        return await self.known.rows(owner, np.array(numbers, np.uint32), state, look.revision)

    async def check(self, owner: Owner, numbers: Sequence[int]) -> None:
        """What is said of these rows is what the store says."""
        found, expected = (
            await self.asked(owner, numbers),
            await self.memory.store.rows(owner, numbers),
        )
        assert found.data == expected.data
        for session in set(read_rows(found.data)["session"].tolist()) - {0}:
            assert found.sessions.get(session) == expected.sessions.get(session)

    async def says(self, session: str, exchange: str, *, user: str, here: bool) -> None:
        key = await self.memory.commit(session, said(exchange, "A boat.", user=user), indexed=False)
        await (self.here if here else self.memory.indexer).level(key)


@pytest.fixture
def watched(remembering: Memory) -> Watched:
    return Watched(remembering)


async def test_what_was_read_or_written_here_is_not_read_again(watched: Watched) -> None:
    await watched.says("a", "x1", user="kai", here=True)
    await watched.says("b", "x2", user="kai", here=True)
    await watched.check(KAI, [0, 1])
    assert watched.read == 2
    await watched.says("b", "x3", user="kai", here=True)
    await watched.says("c", "x4", user="kai", here=True)
    await watched.check(KAI, [0, 1, 2, 3])
    assert watched.read == 2


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
    watched = Watched(remembering, most=3)
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
                watched.known.forget()
            case kind:
                await watched.says(session, f"x{step}", user="kai", here=kind > 4)
        await watched.check(KAI, sorted(random.sample(range(40), random.randint(1, 12))))
