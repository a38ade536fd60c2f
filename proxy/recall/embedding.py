"""The seam to what turns texts into vectors: a model in the process, or an API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from proxy.recall.packing import Array

LONGEST = 2_000
"""Characters of a text that are embedded: the rest of a long message moves its vector little, costs
as much again, and models refuse or cut what is longer."""


class EmbedderError(Exception):
    """There are no vectors now; later there may be."""


class EmbedderRefused(EmbedderError):
    """There will be none before somebody changes something: a key, a model's name, a text."""


class Embedder(Protocol):
    """Vectors of one model are compared with each other, and never with another's."""

    @property
    def model(self) -> str:
        """The model's id."""
        ...

    @property
    def at_once(self) -> int:
        """How many texts to give it at once in the background."""
        ...

    async def embed(self, texts: Sequence[str]) -> Array:
        """One row of floats a text, of any length but all of the same.  Raises EmbedderError."""
        ...


def beginning_of(text: str) -> str:
    """What of a text is embedded; never empty, which APIs refuse, nor with halves of characters."""
    return text[:LONGEST].strip().encode("utf-8", "replace").decode() or "."
