"""What is erased while it is indexed or embedded leaves no trace in the index."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proxy.chat.message import typed_text_of
from proxy.memory.archive import Revision
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.recall.indexing.backfill import EmbeddingBackfill, Pace
from proxy.recall.indexing.indexer import (
    MessageVersions,
    passages_of,
    seqs_by_session,
    zero_old_vectors,
    zero_vectors,
)
from proxy.recall.ranking.packing import check_of
from proxy.recall.semantic.vectors import vector_set_name
from tests.support.store.meanings import Meanings, embed_all
from tests.support.store.passages import KAI, TENANT, Memory, said

A, B = SessionKey(TENANT, "a"), SessionKey(TENANT, "b")


async def vectors(memory: Memory, embedder: Meanings, owner: Owner = KAI) -> list[bool]:
    """Which of the first ten passages have one."""
    size = embedder.dimensions
    name = vector_set_name(embedder.model, size)
    data = (await memory.store.vectors(owner, name, size, 0, 10)).ljust(10 * size, b"\0")
    return [any(data[n * size : (n + 1) * size]) for n in range(10)]


async def filled(memory: Memory) -> tuple[EmbeddingBackfill, Meanings]:
    """All that is there has a vector."""
    embedder = Meanings(at_once=3)
    filling = EmbeddingBackfill(
        memory.store, memory.store, embedder, typed_text_of, memory.clock, Pace(share=1.0)
    )
    await embed_all(filling, KAI)
    return filling, embedder


@pytest.mark.parametrize("others", [True, False])
async def test_what_is_deleted_while_it_is_embedded_has_no_vector(
    remembering: Memory, others: bool
) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    if others:
        await remembering.commit("b", said("x2", "My dog.", user="kai"))
    embedder = Meanings(at_once=10)
    filling = EmbeddingBackfill(
        remembering.store,
        remembering.store,
        embedder,
        typed_text_of,
        remembering.clock,
        Pace(share=1.0),
    )
    embedder.gate = asyncio.Event()
    embedder.gate.set()
    await filling._learn_name()
    embedder.gate, embedder.asked = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(embed_all(filling, KAI))
    await embedder.asked.wait()
    await remembering.store.delete(A)
    embedder.gate.set()
    await work
    assert await vectors(remembering, embedder) == [False, False, others, *[False] * 7]


async def test_a_person_who_is_erased_and_returns_while_it_is_embedded_has_only_new_vectors(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", "My dog.", user="kai"))
    embedder = Meanings(at_once=10)
    filling = EmbeddingBackfill(
        remembering.store,
        remembering.store,
        embedder,
        typed_text_of,
        remembering.clock,
        Pace(share=1.0),
    )
    await filling._learn_name()
    embedder.gate, embedder.asked = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(embed_all(filling, KAI))
    await embedder.asked.wait()
    remembering.clock.now += 1
    await remembering.store.delete(A)
    await remembering.store.drop(KAI)
    await remembering.commit("b", said("x2", "Rain.", user="kai"))
    embedder.gate.set()
    await work
    assert await vectors(remembering, embedder) == [True, *[False] * 9]


@pytest.mark.parametrize("user", ["kai", None])
async def test_what_is_deleted_while_it_is_indexed_is_not_in_the_index(
    remembering: Memory, monkeypatch: pytest.MonkeyPatch, user: str | None
) -> None:
    owner = KAI if user else Owner(TENANT, session="a")
    await remembering.commit("a", said("x1", "My boat.", user=user), indexed=False)
    write = remembering.store.write

    async def deleted_first(*asked: Any) -> bool:
        """It was read: now it is erased, and then it is written."""
        monkeypatch.setattr(remembering.store, "write", write)
        await remembering.store.delete(A)
        await remembering.store.drop(owner)
        return await write(*asked)

    monkeypatch.setattr(remembering.store, "write", deleted_first)
    await remembering.indexer.index_session(A)
    assert await seqs_by_session(remembering.store, owner) == {}
    assert (await remembering.store.lookup(owner, (), 0)).revision == 0


async def test_the_passages_of_a_session_are_found_and_blanked(remembering: Memory) -> None:
    for number, session in enumerate("abab"):
        await remembering.commit(session, said(f"x{number}", "My boat.", "Soup.", user="kai"))
    _, embedder = await filled(remembering)
    assert await passages_of(remembering.store, KAI, "b") == [2, 3, 6, 7]
    assert await passages_of(remembering.store, KAI, "unknown") == []
    places = await seqs_by_session(remembering.store, KAI)
    assert {name: list(seqs) for name, seqs in places.items()} == {
        "a": [1, 2, 3, 4],
        "b": [1, 2, 3, 4],
    }
    await zero_vectors(remembering.store, KAI, [2, 3, 6, 7])
    there = [number not in (2, 3, 6, 7) for number in range(8)]
    assert await vectors(remembering, embedder) == [*there, False, False]
    await zero_vectors(remembering.store, Owner(TENANT, user="nobody"), [1])
    await zero_vectors(remembering.store, KAI, [])
    assert await vectors(remembering, embedder) == [*there, False, False]


async def test_a_message_that_is_removed_has_no_vector_and_gets_none(remembering: Memory) -> None:
    for number, session in enumerate("ab"):
        await remembering.commit(session, said(f"x{number}", "My boat.", "Soup.", user="kai"))
    filling, embedder = await filled(remembering)
    assert await remembering.store.revise(A, Revision(removed=("x0.0",)))
    await zero_old_vectors(remembering.store, KAI, "a", MessageVersions([1]))
    await remembering.commit("a", said("x2", "My dog.", user="kai"))
    await embed_all(filling, KAI)
    assert await vectors(remembering, embedder) == [False, *[True] * 4, *[False] * 5]


async def test_what_a_message_says_now_keeps_its_vector(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    _, embedder = await filled(remembering)
    line = await remembering.store.message(A, "x1.0")
    assert line is not None
    now = check_of(line.card)
    await zero_old_vectors(remembering.store, KAI, "a", MessageVersions([1, 2], [now]))
    assert await vectors(remembering, embedder) == [True, *[False] * 9]


async def test_a_session_that_is_indexed_anew_leaves_no_vectors_behind(
    remembering: Memory,
) -> None:
    """As it is behind the removal of its last message: its old number leads nowhere then."""
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    filling, embedder = await filled(remembering)
    assert await remembering.store.revise(A, Revision(removed=("x1.1",)))
    await remembering.commit("a", said("x2", "My dog.", user="kai"))
    assert await vectors(remembering, embedder) == [False] * 10
    await embed_all(filling, KAI)
    assert await vectors(remembering, embedder) == [False, False, True, True, *[False] * 6]
