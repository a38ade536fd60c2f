"""Recall by meaning beside words: what it adds, and that it never takes anything away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from proxy.chat.message import typed_text_of
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.recall.index import Owner
from proxy.recall.index_cache import IndexCache
from proxy.recall.indexing.backfill import EmbeddingBackfill
from proxy.recall.indexing.state import read_state
from proxy.recall.query.query import RecallOptions
from proxy.recall.ranking.packing import Array
from proxy.recall.recaller import Recaller
from proxy.recall.results import Recollection
from proxy.recall.semantic import vectors
from proxy.recall.semantic.embedders import EmbedderError
from proxy.recall.semantic.vectors import VectorCache, VectorSearch, vector_set_name
from tests.support.store.meanings import Meanings, embed_all
from tests.support.store.passages import KAI, TENANT, Memory, ids, said
from tests.support.waiting import PATIENCE

VESSEL = "My dinghy is scarlet."
ASKED = "Which boat is red?"
"""Means the same, in other words."""


class Sense:
    """Recall with a model; ``near`` finds, ``embedder`` is the model."""

    def __init__(self, memory: Memory, embedder: Meanings, patience: float = PATIENCE) -> None:
        self.memory, self.embedder = memory, embedder
        self.near = VectorSearch(memory.store, embedder, patience)
        self.memory.recaller = Recaller(
            IndexCache(memory.store),
            memory.store,
            memory.index_updater,
            typed_text_of,
            memory.clock,
            self.near,
        )

    async def fill(self) -> None:
        store = self.memory.store
        backfill = EmbeddingBackfill(store, store, self.embedder, typed_text_of, self.memory.clock)
        await embed_all(backfill, KAI)
        self.embedder.texts.clear()

    async def recall(self, text: str = ASKED, **fields: object) -> Recollection:
        return await self.memory.recall(text, **{"options": RecallOptions(), **fields})


@pytest.fixture
async def sense(remembering: Memory) -> AsyncIterator[Sense]:
    """Someone with a scarlet dinghy, and soup; all of it has vectors."""
    sense = Sense(remembering, Meanings())
    await remembering.commit("a", said("x1", VESSEL, "Is it?", "I had soup.", user="kai"))
    await sense.fill()
    yield sense
    await sense.near.close()


async def test_what_says_it_in_other_words_is_recalled(sense: Sense) -> None:
    found = await sense.recall()
    assert found.passages[0].text == VESSEL
    assert found.passages[0].parts["dense"] > 0


async def test_without_a_model_it_is_not(sense: Sense) -> None:
    memory = sense.memory
    words = Recaller(
        IndexCache(memory.store), memory.store, memory.index_updater, typed_text_of, memory.clock
    )
    memory.recaller = words
    assert not await sense.recall()


async def test_where_nothing_is_on_the_subject_nothing_is_recalled(sense: Sense) -> None:
    assert not await sense.recall("Which puppy is small?")


@pytest.mark.parametrize("gone", ["deleted", "superseded"])
async def test_what_is_gone_is_not_recalled_by_its_vector(sense: Sense, gone: str) -> None:
    assert ids(await sense.recall())[0] == "x1.0"
    if gone == "deleted":
        await sense.memory.store.delete(SessionKey(TENANT, "a"))
    else:
        await sense.memory.commit("a", said("x2", "No.", superseded=("x1.0",)), indexed=False)
    assert "x1.0" not in ids(await sense.recall())


async def test_an_index_made_anew_is_not_searched_with_old_vectors(sense: Sense) -> None:
    """The same numbers are other passages now."""
    assert (await sense.recall()).passages[0].text == VESSEL
    memory = sense.memory
    await memory.store.delete(SessionKey(TENANT, "a"))
    memory.clock.now += 1
    await memory.commit("b", said("x2", "I had broth.", "Fine.", "Rain.", user="kai"))
    await memory.indexer.rebuild(KAI)
    await sense.fill()
    assert not await sense.recall()
    assert (await sense.recall("Was there soup?")).passages[0].text == "I had broth."


async def test_another_persons_vectors_are_not_searched(sense: Sense) -> None:
    assert not await sense.recall(user="mia")


async def test_what_is_new_is_found_beside_what_was_known(sense: Sense) -> None:
    await sense.recall()
    await sense.memory.commit("b", said("x2", "A scarlet dinghy, I saw.", user="kai"))
    await sense.fill()
    assert {"x1.0", "x2.0"} <= set(ids(await sense.recall()))


async def test_of_what_is_known_nothing_is_read_again(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sense.recall()
    await sense.memory.commit("b", said("x2", "A scarlet dinghy, I saw.", user="kai"))
    await sense.fill()
    read, real = list[range](), sense.memory.store.vectors

    async def noted(owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        read.append(range(first, last))
        return await real(owner, model, size, first, last)

    monkeypatch.setattr(sense.memory.store, "vectors", noted)
    for _ in range(2):
        await sense.recall()
    assert read == [range(3, 4)]


async def test_vectors_of_another_model_are_never_compared(sense: Sense) -> None:
    for other in (Meanings("other"), Meanings(dimensions=9)):
        changed = Sense(sense.memory, other)
        assert not await changed.recall()
        await changed.fill()
        assert (await changed.recall()).passages[0].text == VESSEL
        await changed.near.close()


async def test_what_another_tenant_erases_leaves_vectors_where_they_are(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sense.recall()
    sense.memory.recaller.clear_caches("another")

    async def none(*_: object) -> bytes:
        raise AssertionError("read again")

    monkeypatch.setattr(sense.memory.store, "vectors", none)
    assert (await sense.recall()).passages[0].text == VESSEL


async def test_of_what_is_erased_no_question_and_no_vector_is_kept(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sense.recall()
    sense.embedder.texts.clear()
    sense.memory.recaller.clear_caches(KAI.tenant)
    read: list[tuple[int, int]] = []
    original = sense.memory.store.vectors

    async def counting(owner: Owner, model: str, size: int, begin: int, end: int) -> bytes:
        read.append((begin, end))
        return await original(owner, model, size, begin, end)

    monkeypatch.setattr(sense.memory.store, "vectors", counting)
    assert (await sense.recall()).passages[0].text == VESSEL
    assert (sense.embedder.texts, read) == ([[ASKED]], [(0, 3)])


async def test_a_question_is_embedded_once(sense: Sense) -> None:
    for _ in range(3):
        await sense.recall()
    assert sense.embedder.texts == [[ASKED]]


@pytest.mark.parametrize("text", ["Thanks!", ""])
async def test_small_talk_is_not_embedded(sense: Sense, text: str) -> None:
    assert not await sense.recall(text)
    assert sense.embedder.texts == []


WORDS = "Tell me about the soup."


@pytest.mark.parametrize("failure", [EmbedderError("away"), ValueError("a bug")])
async def test_words_are_enough_while_the_model_does_not_work(
    sense: Sense, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    sense.embedder.failure = failure
    with caplog.at_level(logging.CRITICAL):
        assert "x1.2" in ids(await sense.recall(WORDS))


async def test_a_model_that_fails_is_left_alone_for_a_while(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    sense.embedder.failure = EmbedderError("away")
    for n in range(3):
        assert "x1.2" in ids(await sense.recall(f"{WORDS} {n}"))
    assert len(sense.embedder.texts) == 1
    sense.embedder.failure = None
    monkeypatch.setattr(vectors, "BACKOFF", -1.0)
    sense.near._back_off("is asked again from now on")
    assert (await sense.recall()).passages[0].text == VESSEL


async def test_a_question_that_is_refused_is_near_to_nothing(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def embed(texts: Sequence[str]) -> Array:
        return np.zeros((len(texts), 8), np.float32)

    monkeypatch.setattr(sense.embedder, "embed", embed)
    state = read_state((await sense.memory.store.lookup(KAI, (), 0)).state)
    assert state is not None
    for _ in range(2):
        asked = sense.near.start_embedding(ASKED)
        assert asked is not None
        assert await sense.near.search(asked, KAI, state) is vectors.NO_SIMILARITIES


async def test_words_do_not_wait_for_a_slow_model_longer_than_its_patience(sense: Sense) -> None:
    sense.embedder.gate = asyncio.Event()
    hasty = Sense(sense.memory, sense.embedder, patience=0.01)
    assert "x1.2" in ids(await hasty.recall(WORDS))
    assert not await hasty.recall()
    await hasty.near.close()


async def test_what_came_late_is_at_hand_the_next_time(sense: Sense) -> None:
    hasty = Sense(sense.memory, sense.embedder, patience=0.0)
    sense.embedder.gate = asyncio.Event()
    assert not await hasty.recall()
    sense.embedder.gate.set()
    await asyncio.gather(*hasty.near._running)
    hasty.near._patience = PATIENCE
    assert (await hasty.recall()).passages[0].text == VESSEL
    assert sense.embedder.texts == [[ASKED]]


async def test_a_model_that_is_always_late_is_left_alone_for_a_while(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MAX_LATE", 3)
    sense.embedder.gate = asyncio.Event()
    hasty = Sense(sense.memory, sense.embedder, patience=0.0)
    for n in range(6):
        assert "x1.2" in ids(await hasty.recall(f"{WORDS} {n}"))
    assert len(sense.embedder.texts) == 3
    await hasty.near.close()


async def test_only_so_many_questions_wait_for_a_model(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MAX_RUNNING", 4)
    sense.embedder.gate = asyncio.Event()
    hasty = Sense(sense.memory, sense.embedder, patience=0.0)
    for n in range(6):
        await hasty.recall(f"{WORDS} {n}")
    assert len(sense.embedder.texts) == 2
    await hasty.near.close()


async def test_a_store_that_cannot_read_vectors_leaves_the_words(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object) -> bytes:
        raise StoreError("no vectors")

    monkeypatch.setattr(type(sense.memory.store), "vectors", broken)
    assert "x1.2" in ids(await sense.recall(WORDS))


async def test_vectors_are_read_once_and_then_only_the_new_ones(
    sense: Sense, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    store = sense.memory.store
    real = type(store).vectors

    async def watched(self, owner, model, size, first, last):  # type: ignore[no-untyped-def]
        asked.append((first, last))
        return await real(self, owner, model, size, first, last)

    monkeypatch.setattr(type(store), "vectors", watched)
    for n in range(2):
        await sense.recall()
        await sense.recall(WORDS)
        await sense.memory.commit("b", said(f"x{n + 2}", "My gondola, too.", user="kai"))
        await sense.fill()
    await sense.recall()
    assert asked == [(0, 3), (3, 4), (4, 5)]


async def test_vectors_at_hand_take_bounded_memory(sense: Sense) -> None:
    size = sense.embedder.dimensions
    name, state = vector_set_name("meanings", size), await sense.memory.state(KAI)
    one = (await VectorCache(sense.memory.store).matrix(KAI, name, size, state)).bytes
    shelf = VectorCache(sense.memory.store, max_bytes=2 * one)
    owners = [KAI._replace(user=f"{n}") for n in range(5)]
    for owner in [*owners, *owners]:
        assert (await shelf.matrix(owner, name, size, state)).bytes == one
    assert [owner for owner, _ in shelf._vectors] == owners[-2:]
