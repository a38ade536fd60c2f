"""What is near a question in meaning, beside what shares words with it.

The question is embedded while the index is asked for its words, and both together have ``patience``
seconds: a model that is slow or away costs a chat no more than that, and the words are still there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from proxy.memory.store import StoreError
from proxy.recall.embedding import Embedder, EmbedderError, beginning_of
from proxy.recall.index import Index, Owner
from proxy.recall.packing import Array
from proxy.recall.state import State
from proxy.recall.vectors import MOST_SEARCHED, NOTHING_NEAR, Matrix, Near, name_of

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that is being embedded; ``until`` is by the event loop's clock."""

    vector: asyncio.Task[Array | None]
    until: float


class Nearness:
    """Searches vectors; never fails, never waits longer than ``patience`` seconds."""

    def __init__(self, index: Index, embedder: Embedder, patience: float) -> None:
        self._embedder, self._patience = embedder, patience
        self._shelf = Shelf(index)
        self._known: OrderedDict[str, Array] = OrderedDict()
        self._running: set[asyncio.Task[Any]] = set()
        self._rests_until = 0.0
        self._late = 0

    def __repr__(self) -> str:
        return f"<Nearness [{len(self._known)} questions, {len(self._running)} running]>"

    async def close(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

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
        vector = self._known.pop(text, None)
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
        if len(self._known) > MOST_QUESTIONS:
            self._known.popitem(last=False)
        return vector

    def _rest(self, why: str) -> None:
        self._late = 0
        self._rests_until = asyncio.get_running_loop().time() + REST
        logger.warning("recall goes by words alone for a while: %s %s", self._embedder.model, why)


@dataclass(frozen=True, slots=True)
class Kept:
    """Vectors of the index that was ``born`` then."""

    born: float
    matrix: Matrix


class Shelf:
    """Owners' vectors, read once and then extended by what is new."""

    def __init__(self, index: Index, most: int = MOST_BYTES) -> None:
        self._index, self._left = index, most
        self._kept: OrderedDict[tuple[Owner, str], Kept] = OrderedDict()

    async def matrix(self, owner: Owner, name: str, size: int, state: State) -> Matrix:
        """All vectors of that name, as far as the state says.  Raises StoreError."""
        end = state.embedded.get(name, 0)
        kept = self._kept.get((owner, name))
        if kept is None or kept.born != state.born or kept.matrix.end > end:
            first = max(0, end - MOST_SEARCHED)
            kept = Kept(state.born, Matrix.read(first, b"", size))
        begin = max(kept.matrix.end, end - MOST_SEARCHED)
        if begin < end:
            data = await self._index.vectors(owner, name, size, begin, end)
            more = Matrix.read(begin, data.ljust((end - begin) * size, b"\0"), size)
            whole = kept.matrix.extended(more) if kept.matrix.end == begin else more
            kept = Kept(state.born, whole)
        self._keep((owner, name), kept)
        return kept.matrix

    def _keep(self, key: tuple[Owner, str], kept: Kept) -> None:
        before = self._kept.pop(key, None)
        self._kept[key] = kept
        self._left += (before.matrix.bytes if before else 0) - kept.matrix.bytes
        while self._left < 0:
            _, oldest = self._kept.popitem(last=False)
            self._left += oldest.matrix.bytes
