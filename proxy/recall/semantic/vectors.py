"""Finds passages similar to a question in meaning: packed vectors, and the search among them.

A packed vector has a byte for each dimension: it is scaled so that its largest component is 127;
its length is lost, but only directions are compared.  The error of a cosine is about 0.001.  A zero
vector stands for a missing one.

The question is embedded while its words are looked up, and embedding and search together have
``patience`` seconds: a slow or unreachable model delays a chat no longer, and recall by words
works.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from proxy.memory.store import StoreError
from proxy.recall.index import Index, Owner
from proxy.recall.indexing.state import State
from proxy.recall.ranking.match import REACH, Floats, Numbers
from proxy.recall.ranking.packing import Array
from proxy.recall.semantic.embedders import Embedder, EmbedderError, text_to_embed

MAX_SEARCHED = 20_000
"""Vectors of an owner that are searched, the newest."""

MAX_NEAREST = 50
"""Passages that are candidates because of their similarity."""

MIN_DISTINCTION = 0.36
"""See ``Similarities.related``.  About nine of ten questions about a conversation have a passage
that stands out so far from the others, of questions about another conversation one of twenty."""

CHUNK = 2_048
"""Vectors that are unpacked at a time, so that they stay in the processor's cache."""


def vector_set_name(model: str, dimensions: int) -> str:
    """The name under which an index stores vectors that can be compared with each other."""
    return f"{model}/{dimensions}"


def pack(vectors: Array) -> list[bytes]:
    largest = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
    scaled = vectors * (127.0 / np.maximum(largest, 1e-30))
    return [row.tobytes() for row in np.rint(scaled).astype(np.int8)]


class Similarities(msgspec.Struct, frozen=True):
    """Passages by number, ascending, and the cosine of each with a question."""

    numbers: Numbers
    scores: Floats

    @property
    def related(self) -> bool:
        """Whether the best passage is on the question's subject, whatever its words.

        Each model has a scale of its own, so what counts is how far it is above the others, as a
        part of how far it could be.
        """
        if not self.numbers.size:
            return False
        best = float(self.scores.max())
        others = (float(self.scores.sum()) - best) / max(1, self.scores.size - 1)
        return best - others >= MIN_DISTINCTION * (1 - others)

    def nearest(self, limit: int = MAX_NEAREST) -> Numbers:
        """The numbers of the nearest passages and of those around them, ascending."""
        best = self.numbers
        if best.size > limit:
            best = best[np.argpartition(self.scores, -limit)[-limit:]]
        around = (best.astype(np.int64)[:, None] + np.arange(-REACH, REACH + 1)).ravel()
        return np.unique(around[around >= 0]).astype(np.uint32)

    def of(self, numbers: Numbers) -> dict[int, float]:
        """The scores of some passages, those that have one."""
        places = np.flatnonzero(np.isin(self.numbers, numbers))
        found = zip(self.numbers[places].tolist(), self.scores[places].tolist(), strict=True)
        return dict(found)


NO_SIMILARITIES = Similarities(np.zeros(0, np.uint32), np.zeros(0, np.float32))


class Matrix(msgspec.Struct, frozen=True):
    """The packed vectors of the passages from ``first`` on, and their lengths after packing."""

    first: int
    data: NDArray[np.int8]
    lengths: Floats

    @classmethod
    def read(cls, first: int, data: bytes, dimensions: int) -> Matrix:
        """Decode vectors as an index stores them; the last ones may be missing."""
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
        """With the vectors of ``more``, which follow; the newest ``MAX_SEARCHED`` of all."""
        data = np.concatenate([self.data, more.data])[-MAX_SEARCHED:]
        lengths = np.concatenate([self.lengths, more.lengths])[-MAX_SEARCHED:]
        return Matrix(more.end - lengths.size, data, lengths)

    def similarities(self, question: Array) -> Similarities:
        """The cosine of each vector with a question's."""
        unit_vector = (question / max(float(np.linalg.norm(question)), 1e-30)).astype(np.float32)
        present = np.flatnonzero(self.lengths)
        products = [part.astype(np.float32) @ unit_vector for part in _chunks(self.data)]
        if not present.size:
            return NO_SIMILARITIES
        scores = (np.concatenate(products)[present] / self.lengths[present]).astype(np.float32)
        return Similarities((present + self.first).astype(np.uint32), scores)


def _chunks(data: NDArray[np.int8]) -> Sequence[NDArray[np.int8]]:
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def _lengths(rows: NDArray[np.int8]) -> Floats:
    parts = [np.linalg.norm(part.astype(np.float32), axis=1) for part in _chunks(rows)]
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros(0, np.float32)


logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

MAX_BYTES = 128 * 1024 * 1024
"""Bytes of vectors in the cache."""

MAX_QUESTIONS = 256
"""Questions whose vectors are cached: the same one comes again when an answer is regenerated."""

MAX_RUNNING = 128
"""Concurrent tasks, two for each question; further questions are searched by words alone."""

BACKOFF = 10.0
"""Seconds for which a model that fails is not called again."""

MAX_LATE = 8
"""Consecutive questions without an answer in time after which the model counts as failing."""


class PendingQuestion(msgspec.Struct, frozen=True):
    """A question that is being embedded; ``deadline`` is by the event loop's clock."""

    vector: asyncio.Task[Array | None]
    deadline: float


class VectorSearch:
    """Searches vectors; never fails, never waits longer than ``patience`` seconds."""

    def __init__(self, index: Index, embedder: Embedder, patience: float) -> None:
        self._embedder, self._patience = embedder, patience
        self._vectors = VectorCache(index)
        self._question_vectors: LRUCache[str, Array] = LRUCache(MAX_QUESTIONS)
        self._running: set[asyncio.Task[Any]] = set()
        self._backoff_until = 0.0
        self._late = 0

    def __repr__(self) -> str:
        questions = len(self._question_vectors)
        return f"<VectorSearch [{questions} questions, {len(self._running)} running]>"

    async def close(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def clear_caches(self, tenant: str) -> None:
        """Drop the cached questions of all, and the vectors of a tenant: they reveal what was
        said."""
        self._question_vectors.clear()
        self._vectors.clear(tenant)

    def start_embedding(self, text: str) -> PendingQuestion | None:
        """Start to embed a question; None while the model fails or too much is in progress."""
        now = asyncio.get_running_loop().time()
        if now < self._backoff_until or len(self._running) >= MAX_RUNNING:
            return None
        return PendingQuestion(self._start(self._vector(text_to_embed(text))), now + self._patience)

    async def search(self, pending: PendingQuestion, owner: Owner, state: State) -> Similarities:
        """The similarities of an owner's passages; none if they are not computed in time.

        Late work goes on, and its result is cached for the next time.
        """
        work = self._start(self._search(pending, owner, state))
        left = pending.deadline - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({work}, timeout=max(0.0, left))
        self._late = 0 if pending.vector.done() else self._late + 1
        if self._late >= MAX_LATE:
            self._back_off("is slow")
        return work.result() if done else NO_SIMILARITIES

    def _start(self, work: Coroutine[Any, Any, ResultT]) -> asyncio.Task[ResultT]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _search(self, pending: PendingQuestion, owner: Owner, state: State) -> Similarities:
        vector = await pending.vector
        if vector is None:
            return NO_SIMILARITIES
        name = vector_set_name(self._embedder.model, vector.size)
        try:
            matrix = await self._vectors.matrix(owner, name, vector.size, state)
        except StoreError as failure:
            logger.warning("vectors cannot be read: %s", failure)
            return NO_SIMILARITIES
        return matrix.similarities(vector)

    async def _vector(self, text: str) -> Array | None:
        vector = self._question_vectors.get(text)
        try:
            if vector is None:
                (vector,) = await self._embedder.embed([text])
        except EmbedderError as failure:
            self._back_off(f"does not work: {failure}")
            return None
        except Exception:  # the boundary to an extra: whatever is wrong with it, words are enough
            logger.exception("a question could not be embedded")
            return None
        self._question_vectors[text] = vector
        return vector if vector.any() else None

    def _back_off(self, why: str) -> None:
        self._late = 0
        self._backoff_until = asyncio.get_running_loop().time() + BACKOFF
        logger.warning("recall goes by words alone for a while: %s %s", self._embedder.model, why)


MAX_ROWS_TO_COMPARE = 1_000
"""New rows that are read to verify that an index has only grown; with more, vectors are reread."""


class CachedVectors(msgspec.Struct, frozen=True):
    """Vectors of an index, and its state when they were read."""

    state: State
    matrix: Matrix


class VectorCache:
    """A cache of owners' vectors, which are read once and then extended by new ones."""

    def __init__(self, index: Index, max_bytes: int = MAX_BYTES) -> None:
        self._index = index
        self._vectors: LRUCache[tuple[Owner, str], CachedVectors] = LRUCache(
            max_bytes, getsizeof=lambda entry: entry.matrix.bytes
        )

    def clear(self, tenant: str) -> None:
        for key in [key for key in self._vectors if key[0].tenant == tenant]:
            del self._vectors[key]

    async def matrix(self, owner: Owner, name: str, size: int, state: State) -> Matrix:
        """The newest ``MAX_SEARCHED`` vectors of that name, up to the state's end of them.  Raises
        StoreError."""
        end = state.embedded_until.get(name, 0)
        cached = self._vectors.get((owner, name))
        if (
            cached is None
            or cached.matrix.end > end
            or not await self._is_same_index(owner, cached.state, state)
        ):
            matrix = Matrix.read(max(0, end - MAX_SEARCHED), b"", size)
        else:
            matrix = cached.matrix
        begin = max(matrix.end, end - MAX_SEARCHED)
        if begin < end:
            data = await self._index.vectors(owner, name, size, begin, end)
            more = Matrix.read(begin, data.ljust((end - begin) * size, b"\0"), size)
            matrix = matrix.extended(more) if matrix.end == begin else more
        if matrix.bytes <= self._vectors.maxsize:
            self._vectors[owner, name] = CachedVectors(state, matrix)
        return matrix

    async def _is_same_index(self, owner: Owner, one: State, other: State) -> bool:
        """Whether one of two states of an index is a later state of the other.

        A server that has lost its newest passages reuses their numbers.  Reads nothing if the
        number of passages is the same.
        """
        earlier, later = sorted((one, other), key=lambda each: each.passages)
        grown = range(earlier.passages, later.passages)
        if len(grown) > MAX_ROWS_TO_COMPARE:
            return False
        rows = (await self._index.rows(owner, grown)).data if grown else b""
        return earlier.is_followed_by(later, rows)
