"""A model of meaning small enough to follow: some words mean the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from proxy.recall.index import Owner
from proxy.recall.indexing.backfill import EmbeddingBackfill
from proxy.recall.ranking.packing import Array

SAME = ("boat dinghy gondola", "dog puppy hound", "red scarlet", "soup broth", "rain drizzle")
"""Words with one meaning, one dimension a line."""


def meaning(text: str, dimensions: int = 8) -> list[float]:
    """How often each meaning is in a text; the last dimension is in all that has words."""
    words = text.lower().replace(".", " ").replace("?", " ").split()
    found = [float(sum(word in same.split() for word in words)) for same in SAME]
    return [*found, *[0.0] * (dimensions - len(SAME) - 1), 0.1]


class Meanings:
    """An embedder.  ``texts`` are those it was given; ``failure`` is raised while there is one;
    while there is a ``gate`` it waits for it."""

    def __init__(self, model: str = "meanings", dimensions: int = 8, at_once: int = 2) -> None:
        self.model, self.dimensions, self.at_once = model, dimensions, at_once
        self.texts: list[list[str]] = []
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Array:
        self.texts.append(list(texts))
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return np.array([meaning(text, self.dimensions) for text in texts], np.float32)


async def embed_all(backfill: EmbeddingBackfill, owner: Owner) -> None:
    """Make all vectors that an owner's index lacks."""
    while await backfill.embed_batch(owner):
        pass
