"""What is near a question in meaning: vectors packed as an index stores them, and the search
among them.

A byte for each dimension: a vector is scaled so that its largest component is 127, and its length
is not kept, as only directions are compared.  That costs about a thousandth of a cosine.  Zeros
stand for no vector.

The question is embedded while the index is asked for its words, and both together have ``patience``
seconds: a model that is slow or away costs a chat no more than that, and the words are still there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from weakref import WeakSet

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from proxy.memory.store import StoreError
from proxy.recall.index import Index, Owner
from proxy.recall.indexing.state import State
from proxy.recall.ranking.match import REACH, Floats, Numbers
from proxy.recall.ranking.packing import Array
from proxy.recall.semantic.embedders import Embedder, EmbedderError, beginning_of

MOST_SEARCHED = 20_000
"""Vectors of an owner that are searched, the newest."""

MOST_NEAREST = 50
"""Passages that are considered because they are near."""

RELATED = 0.36
"""Of questions about a conversation about nine of ten have a passage that stands out so far from
the others, of questions about another conversation one of twenty."""

CHUNK = 2_048
"""Vectors at a time: what is unpacked stays within the processor's cache."""


def name_of(model: str, dimensions: int) -> str:
    """What an index calls the vectors that may be compared with each other."""
    return f"{model}/{dimensions}"


def pack(vectors: Array) -> list[bytes]:
    """Each row packed."""
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    scaled = vectors * (127.0 / np.maximum(largest, 1e-30))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


class Near(msgspec.Struct, frozen=True):
    """Passages by number, ascending, and the cosine of each with a question."""

    numbers: Numbers
    scores: Floats

    @property
    def related(self) -> bool:
        """Whether the best is on the question's subject, whatever its words.

        Each model has a scale of its own, so what counts is how far it is above the others, as a
        part of how far it could be.
        """
        if not self.numbers.size:
            return False
        best = float(self.scores.max())
        others = (float(self.scores.sum()) - best) / max(1, self.scores.size - 1)
        return best - others >= RELATED * (1 - others)

    def nearest(self, most: int = MOST_NEAREST) -> Numbers:
        """The numbers of the nearest passages and of those around them, ascending."""
        best = self.numbers
        if best.size > most:
            best = best[np.argpartition(self.scores, -most)[-most:]]
        around = (best.astype(np.int64)[:, None] + np.arange(-REACH, REACH + 1)).ravel()
        return np.unique(around[around >= 0]).astype(np.uint32)

    def of(self, numbers: Numbers) -> dict[int, float]:
        """The scores of some passages, those that have one."""
        places = np.flatnonzero(np.isin(self.numbers, numbers))
        found = zip(self.numbers[places].tolist(), self.scores[places].tolist(), strict=True)
        return dict(found)


NOTHING_NEAR = Near(np.zeros(0, np.uint32), np.zeros(0, np.float32))


class Matrix(msgspec.Struct, frozen=True):
    """The packed vectors of passages ``first`` and on; ``lengths`` are as they are packed."""

    first: int
    data: NDArray[np.int8]
    lengths: Floats

    @classmethod
    def read(cls, first: int, data: bytes, dimensions: int) -> Matrix:
        """From what an index holds.  The last vectors may be missing."""
        whole = len(data) - len(data) % dimensions
        rows = np.frombuffer(data[:whole], np.int8).reshape(-1, dimensions)
        return cls(first, rows, _lengths(rows))

    @property
    def end(self) -> int:
        return self.first + self.lengths.size

    @property
    def bytes(self) -> int:
        return self.data.nbytes + self.lengths.nbytes

    def extended(self, more: Matrix) -> Matrix:
        """With the vectors that follow; the newest ``MOST_SEARCHED`` of all."""
        data = np.concatenate([self.data, more.data])[-MOST_SEARCHED:]
        lengths = np.concatenate([self.lengths, more.lengths])[-MOST_SEARCHED:]
        return Matrix(more.end - lengths.size, data, lengths)

    def near(self, question: Array) -> Near:
        """How near each vector is to a question's."""
        sought = (question / max(float(np.linalg.norm(question)), 1e-30)).astype(np.float32)
        there = np.flatnonzero(self.lengths)
        products = [part.astype(np.float32) @ sought for part in _chunks(self.data)]
        if not there.size:
            return NOTHING_NEAR
        scores = (np.concatenate(products)[there] / self.lengths[there]).astype(np.float32)
        return Near((there + self.first).astype(np.uint32), scores)


def _chunks(data: NDArray[np.int8]) -> Sequence[NDArray[np.int8]]:
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def _lengths(rows: NDArray[np.int8]) -> Floats:
    parts = [np.linalg.norm(part.astype(np.float32), axis=1) for part in _chunks(rows)]
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros(0, np.float32)


logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

MOST_BYTES = 128 * 1024 * 1024
"""Vectors that a process keeps at hand."""

MOST_QUESTIONS = 256
"""Questions whose vectors are kept: the same one comes again when an answer is made anew."""

MOST_RUNNING = 128
"""Things under way at the same time, two for a question; more questions go without."""

REST = 10.0
"""Seconds in which a model that fails is not asked again."""

MOST_LATE = 8
"""Questions in a row that may wait in vain before that."""


class Asked(msgspec.Struct, frozen=True):
    """A question that is being embedded; ``until`` is by the event loop's clock."""

    vector: asyncio.Task[Array | None]
    until: float


_ALL: WeakSet[Nearness] = WeakSet()


def forget(tenant: str) -> None:
    """Clear the cached questions, and the vectors of a tenant: they tell of what was said."""
    for each in _ALL:
        each.forget(tenant)


class Nearness:
    """Searches vectors; never fails, never waits longer than ``patience`` seconds."""

    def __init__(self, index: Index, embedder: Embedder, patience: float) -> None:
        self._embedder, self._patience = embedder, patience
        self._shelf = Shelf(index)
        self._known: LRUCache[str, Array] = LRUCache(MOST_QUESTIONS)
        self._running: set[asyncio.Task[Any]] = set()
        self._rests_until = 0.0
        self._late = 0
        _ALL.add(self)

    def __repr__(self) -> str:
        return f"<Nearness [{len(self._known)} questions, {len(self._running)} running]>"

    async def close(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def forget(self, tenant: str) -> None:
        self._known.clear()
        self._shelf.forget(tenant)

    def ask(self, text: str) -> Asked | None:
        """Begin to embed a question; None where that is no use now."""
        now = asyncio.get_running_loop().time()
        if now < self._rests_until or len(self._running) >= MOST_RUNNING:
            return None
        return Asked(self._start(self._vector(beginning_of(text))), now + self._patience)

    async def near(self, asked: Asked, owner: Owner, state: State) -> Near:
        """What is near in an owner's index; nothing if that is not known in time.

        What is late is finished all the same, and at hand the next time.
        """
        work = self._start(self._near(asked, owner, state))
        left = asked.until - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({work}, timeout=max(0.0, left))
        self._late = 0 if asked.vector.done() else self._late + 1
        if self._late >= MOST_LATE:
            self._rest("is slow")
        return work.result() if done else NOTHING_NEAR

    def _start(self, work: Coroutine[Any, Any, ResultT]) -> asyncio.Task[ResultT]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _near(self, asked: Asked, owner: Owner, state: State) -> Near:
        vector = await asked.vector
        if vector is None:
            return NOTHING_NEAR
        name = name_of(self._embedder.model, vector.size)
        try:
            matrix = await self._shelf.matrix(owner, name, vector.size, state)
        except StoreError as failure:
            logger.warning("vectors cannot be read: %s", failure)
            return NOTHING_NEAR
        return matrix.near(vector)

    async def _vector(self, text: str) -> Array | None:
        vector = self._known.get(text)
        try:
            if vector is None:
                (vector,) = await self._embedder.embed([text])
        except EmbedderError as failure:
            self._rest(f"does not work: {failure}")
            return None
        except Exception:  # the boundary to an extra: whatever is wrong with it, words are enough
            logger.exception("a question could not be embedded")
            return None
        self._known[text] = vector
        return vector if vector.any() else None

    def _rest(self, why: str) -> None:
        self._late = 0
        self._rests_until = asyncio.get_running_loop().time() + REST
        logger.warning("recall goes by words alone for a while: %s %s", self._embedder.model, why)


MOST_GROWN = 1_000
"""Rows that are read to see that an index has only grown; of more its vectors are read anew."""


class Kept(msgspec.Struct, frozen=True):
    """Vectors of an index that was in this state."""

    state: State
    matrix: Matrix


class Shelf:
    """Owners' vectors, read once and then extended by what is new."""

    def __init__(self, index: Index, most: int = MOST_BYTES) -> None:
        self._index = index
        self._kept: LRUCache[tuple[Owner, str], Kept] = LRUCache(
            most, getsizeof=lambda kept: kept.matrix.bytes
        )

    def forget(self, tenant: str) -> None:
        for key in [key for key in self._kept if key[0].tenant == tenant]:
            del self._kept[key]

    async def matrix(self, owner: Owner, name: str, size: int, state: State) -> Matrix:
        """All vectors of that name, as far as the state says.  Raises StoreError."""
        end = state.embedded.get(name, 0)
        kept = self._kept.get((owner, name))
        if kept is None or kept.matrix.end > end or not await self._is_of(owner, kept.state, state):
            matrix = Matrix.read(max(0, end - MOST_SEARCHED), b"", size)
        else:
            matrix = kept.matrix
        begin = max(matrix.end, end - MOST_SEARCHED)
        if begin < end:
            data = await self._index.vectors(owner, name, size, begin, end)
            more = Matrix.read(begin, data.ljust((end - begin) * size, b"\0"), size)
            matrix = matrix.extended(more) if matrix.end == begin else more
        if matrix.bytes <= self._kept.maxsize:
            self._kept[owner, name] = Kept(state, matrix)
        return matrix

    async def _is_of(self, owner: Owner, one: State, other: State) -> bool:
        """Whether one of two states of an index has become the other.

        A server that has lost its newest passages gives their numbers to others.  No look at the
        store where there are as many.
        """
        earlier, later = sorted((one, other), key=lambda each: each.passages)
        grown = range(earlier.passages, later.passages)
        if len(grown) > MOST_GROWN:
            return False
        rows = (await self._index.rows(owner, grown)).data if grown else b""
        return earlier.becomes(later, rows)
