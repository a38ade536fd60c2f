"""Vectors are made in the background, each once, and what was missed is made later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from proxy.chat.message import typed_text_of
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner
from proxy.recall.indexing.backfill import EmbeddingBackfill, Pace
from proxy.recall.semantic.embedders import MAX_CHARACTERS, EmbedderError, EmbedderRefused
from proxy.recall.semantic.vectors import pack, vector_set_name
from tests.support.store.meanings import Meanings, embed_all, meaning
from tests.support.store.passages import KAI, TENANT, Memory, said
from tests.support.waiting import PATIENCE

QUICK = Pace(share=1.0, retry=0.0, refused=0.0)


def backfill(memory: Memory, embedder: Meanings, pace: Pace = QUICK) -> EmbeddingBackfill:
    return EmbeddingBackfill(
        memory.store, memory.store, embedder, typed_text_of, memory.clock, pace
    )


@asynccontextmanager
async def opened(filling: EmbeddingBackfill) -> AsyncIterator[EmbeddingBackfill]:
    filling.open()
    try:
        yield filling
    finally:
        await filling.close()


async def vectors(memory: Memory, embedder: Meanings, owner: Owner = KAI) -> list[bytes]:
    """What is stored for each passage; b"" for nothing."""
    size, count = embedder.dimensions, (await memory.state(owner)).passages
    name = vector_set_name(embedder.model, size)
    data = await memory.store.vectors(owner, name, size, 0, count)
    cut = [data[n * size : (n + 1) * size] for n in range(count)]
    return [each if any(each) else b"" for each in cut]


def packed(*texts: str, dimensions: int = 8) -> list[bytes]:
    return pack(np.array([meaning(text, dimensions) for text in texts]))


async def until_embedded(memory: Memory, embedder: Meanings, owner: Owner = KAI) -> None:
    name = vector_set_name(embedder.model, embedder.dimensions)
    async with asyncio.timeout(PATIENCE):
        while (state := await memory.state(owner)).embedded_until.get(name) != state.passages:
            await asyncio.sleep(0)


async def test_every_passage_gets_the_vector_of_its_text(remembering: Memory) -> None:
    texts = ["My boat is red.", "A ship!", "Soup.", "Rain", "My dog."]
    await remembering.commit("a", said("x1", *texts, user="kai"))
    embedder = Meanings(at_once=2)
    await embed_all(backfill(remembering, embedder), KAI)
    assert await vectors(remembering, embedder) == packed(*texts)
    assert [len(batch) for batch in embedder.texts] == [1, 2, 2, 1]


async def test_a_session_of_nobody_has_vectors_of_its_own(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat is red."))
    embedder = Meanings()
    owner = Owner(TENANT, session="a")
    await embed_all(backfill(remembering, embedder), owner)
    assert await vectors(remembering, embedder, owner) == packed("My boat is red.")


async def test_what_has_vectors_is_not_embedded_again_by_a_new_process(
    remembering: Memory,
) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    await embed_all(backfill(remembering, Meanings()), KAI)
    await remembering.commit("a", said("x2", "Rain.", user="kai"))
    again = Meanings()
    await embed_all(backfill(remembering, again), KAI)
    assert again.texts[1:] == [["Rain."]]


async def test_another_model_makes_vectors_of_its_own(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    old, new = Meanings("old"), Meanings("new", dimensions=12)
    await embed_all(backfill(remembering, old), KAI)
    assert await vectors(remembering, new) == [b"", b""]
    await embed_all(backfill(remembering, new), KAI)
    assert await vectors(remembering, new) == packed("My boat.", "Soup.", dimensions=12)
    assert await vectors(remembering, old) == packed("My boat.", "Soup.")


async def test_the_same_model_with_other_dimensions_is_another_model(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", user="kai"))
    await embed_all(backfill(remembering, Meanings(dimensions=8)), KAI)
    again = Meanings(dimensions=9)
    await embed_all(backfill(remembering, again), KAI)
    assert again.texts[1:] == [["My boat."]]


async def test_what_is_gone_from_history_is_not_embedded(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    await remembering.commit("b", said("x2", "Rain.", user="kai"))
    await remembering.commit("a", said("x3", "Dog.", user="kai", superseded=("x1.1",)))
    await remembering.store.delete(SessionKey(TENANT, "b"))
    embedder = Meanings(at_once=10)
    await embed_all(backfill(remembering, embedder), KAI)
    assert await vectors(remembering, embedder) == [
        *packed("My boat."),
        b"",
        b"",
        *packed("Dog."),
    ]


async def test_of_a_long_message_its_beginning_is_embedded(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "boat " * MAX_CHARACTERS, user="kai"))
    embedder = Meanings()
    await embed_all(backfill(remembering, embedder), KAI)
    assert len(embedder.texts[-1][0]) <= MAX_CHARACTERS


async def test_an_index_made_anew_meanwhile_gets_its_vectors_again(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
    await remembering.commit("b", said("x2", "Rain.", user="kai"))
    embedder = Meanings(at_once=10)
    filling = backfill(remembering, embedder)
    await embed_all(filling, KAI)  # the name is known from here on
    await remembering.indexer.rebuild(KAI)
    embedder.gate, embedder.asked = asyncio.Event(), asyncio.Event()
    work = asyncio.create_task(embed_all(filling, KAI))
    await embedder.asked.wait()
    remembering.clock.now += 1
    await remembering.store.delete(SessionKey(TENANT, "b"))
    await remembering.indexer.rebuild(KAI)
    embedder.gate.set()
    await work
    texts = {1: "My boat.", 2: "Soup."}
    expected = [texts[seq] for _, seq in await remembering.indexed(KAI)]
    assert await vectors(remembering, embedder) == packed(*expected)


async def test_an_owner_that_is_gone_meanwhile_does_not_come_back(remembering: Memory) -> None:
    await remembering.commit("a", said("x1", "My boat.", user="kai"))
    embedder = Meanings()
    filling = backfill(remembering, embedder)
    embedder.gate = asyncio.Event()
    work = asyncio.create_task(embed_all(filling, KAI))
    await embedder.asked.wait()
    await remembering.store.drop(KAI)
    embedder.gate.set()
    await work
    assert (await remembering.store.lookup(KAI, (), 0)).state == b""


async def test_what_is_indexed_is_embedded_a_moment_later(remembering: Memory) -> None:
    embedder = Meanings()
    async with opened(backfill(remembering, embedder)) as filling:
        await remembering.commit("a", said("x1", "My boat.", "Soup.", user="kai"))
        filling.enqueue(KAI)
        await until_embedded(remembering, embedder)
    assert await vectors(remembering, embedder) == packed("My boat.", "Soup.")


@pytest.mark.parametrize("failure", [EmbedderError("away"), EmbedderRefused("no")])
async def test_what_failed_is_made_once_the_embedder_works(
    remembering: Memory, failure: EmbedderError
) -> None:
    embedder = Meanings()
    embedder.failure = failure
    await remembering.commit("a", said("x1", "My boat.", user="kai"))
    async with opened(backfill(remembering, embedder)) as filling:
        filling.enqueue(KAI)
        await embedder.asked.wait()
        embedder.failure = None
        await until_embedded(remembering, embedder)
    assert await vectors(remembering, embedder) == packed("My boat.")


async def test_what_takes_too_long_together_is_embedded_in_smaller_batches(
    remembering: Memory,
) -> None:
    class Slow(Meanings):
        async def embed(self, texts):  # type: ignore[no-untyped-def]
            if len(texts) > 2:
                await asyncio.Event().wait()
            return await super().embed(texts)

    embedder = Slow(at_once=8)
    texts = [f"Boat {number}." for number in range(8)]
    await remembering.commit("a", said("x1", *texts, user="kai"))
    quick = Pace(share=1.0, patience=0.05, retry=0.0)
    async with opened(backfill(remembering, embedder, quick)) as filling:
        filling.enqueue(KAI)
        await until_embedded(remembering, embedder)
    assert max(map(len, embedder.texts)) <= 2


async def test_batches_grow_again_once_the_embedder_works(remembering: Memory) -> None:
    class Away(Meanings):
        async def embed(self, texts):  # type: ignore[no-untyped-def]
            self.failure = EmbedderError("away") if len(self.texts) < 6 else None
            return await super().embed(texts)

    embedder = Away(at_once=8)
    texts = [f"Boat {number}." for number in range(50)]
    await remembering.commit("a", said("x1", *texts, user="kai"))
    async with opened(backfill(remembering, embedder)) as filling:
        filling.enqueue(KAI)
        await until_embedded(remembering, embedder)
    assert max(map(len, embedder.texts[6:])) == 8


async def test_one_whose_passages_cannot_be_embedded_holds_up_nobody(remembering: Memory) -> None:
    class Picky(Meanings):
        async def embed(self, texts):  # type: ignore[no-untyped-def]
            if "Soup." in texts:
                raise ValueError("a bug")
            return await super().embed(texts)

    embedder = Picky()
    await remembering.commit("a", said("x1", "Soup.", user="kai"))
    await remembering.commit("b", said("x2", "My boat."))
    nobodys = Owner(TENANT, session="b")
    async with opened(backfill(remembering, embedder)) as filling:
        filling.enqueue(KAI)
        filling.enqueue(nobodys)
        await until_embedded(remembering, embedder, nobodys)
    assert await vectors(remembering, embedder) == [b""]


@pytest.mark.parametrize(
    ("failure", "failures", "expected"),
    [
        pytest.param(EmbedderError(), 1, 2, id="soon"),
        pytest.param(EmbedderError(), 3, 8, id="later"),
        pytest.param(EmbedderError(), 99, 120, id="bounded"),
        pytest.param(EmbedderRefused(), 1, 600, id="a-refusal-is-not-asked-for-again-soon"),
    ],
)
def test_pauses_grow(failure: Exception, failures: int, expected: float) -> None:
    assert Pace().after(failure, failures) == expected
