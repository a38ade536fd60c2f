"""Embeds indexed passages in the background.

An index's state has the number of the first passage without a vector.  Vectors that are missing
(after a crash, a failure of the embedder, a change of the model) are made when the index is next
used or written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from proxy.memory.archive import Message
from proxy.memory.store import StoreError
from proxy.recall.index import Index, Owner, OwnTextOf, PassageHistory
from proxy.recall.indexing.indexer import Indexer, OnWrite, ignore_write, put_zeros
from proxy.recall.indexing.state import State, read_state
from proxy.recall.ranking.packing import check_of, read_rows
from proxy.recall.semantic.embedders import Embedder, EmbedderError, EmbedderRefused, text_to_embed
from proxy.recall.semantic.vectors import MAX_SEARCHED, pack, vector_set_name

logger = logging.getLogger(__name__)


MAX_WAITING = 10_000
"""Owners in the queue; beyond that the oldest are dropped until they are queued again."""


class Pace(msgspec.Struct, frozen=True):
    """How fast to embed; times in seconds.

    ``share``: the maximum share of time spent embedding, so that a large backlog does not use up
    the processor or an API's quota.  ``patience``: timeout of one batch.  ``retry``: pause after a
    failure, doubled with each further one up to ``max_pause``.  ``refused``: pause after a
    permanent refusal.
    """

    share: float = 0.5
    patience: float = 60.0
    retry: float = 2.0
    max_pause: float = 120.0
    refused: float = 600.0

    def after(self, failure: Exception, failures: int) -> float:
        if isinstance(failure, EmbedderRefused):
            return self.refused
        return float(min(self.max_pause, self.retry * 2.0 ** min(failures - 1, 16)))


DEFAULT_PACE = Pace()


class EmbeddingBackfill:
    """Embeds batch after batch, owners round-robin; an owner is queued only once."""

    def __init__(
        self,
        index: Index,
        history: PassageHistory,
        embedder: Embedder,
        own_text_of: OwnTextOf,
        clock: Callable[[], float],
        pace: Pace = DEFAULT_PACE,
        on_write: OnWrite = ignore_write,
    ) -> None:
        self._index, self._history, self._embedder = index, history, embedder
        self._own_text_of, self._pace = own_text_of, pace
        self._indexer = Indexer(index, history, own_text_of, clock, on_write=on_write)
        self._name: str | None = None
        self._size = embedder.at_once
        """Texts of a batch: half as many after a failure, one more after each success."""
        self._waiting: OrderedDict[Owner, None] = OrderedDict()
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<EmbeddingBackfill [waiting: {len(self._waiting)}]>"

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="embedding")

    async def close(self) -> None:
        """Stop at once; missing vectors are made later."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def enqueue(self, owner: Owner) -> None:
        """Queue an owner whose index may have passages without vectors."""
        self._waiting[owner] = None
        if len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
        self._awake.set()

    async def _run(self) -> None:
        failures = 0
        while True:
            await self._awake.wait()
            try:
                await self._drain()
                failures = 0
            except (EmbedderError, StoreError, TimeoutError) as failure:
                failures += 1
                logger.warning("vectors are made later: %s", str(failure) or "no answer in time")
                await asyncio.sleep(self._pace.after(failure, failures))

    async def _drain(self) -> None:
        """Embed a batch of each owner in turn until the queue is empty."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            owner, _ = self._waiting.popitem(last=False)
            begun = loop.time()
            try:
                async with asyncio.timeout(self._pace.patience):
                    more = await self.embed_batch(owner)
                    self._size = min(self._embedder.at_once, self._size + 1)
            except (EmbedderError, StoreError, TimeoutError):
                self._waiting[owner] = None
                self._size = max(1, self._size // 2)
                raise
            except Exception:  # a background task has no caller: go on with other owners
                logger.exception("passages could not be embedded")
                more = False
            if more:
                self._waiting[owner] = None
                await asyncio.sleep((loop.time() - begun) * (1 / self._pace.share - 1))
        self._awake.clear()

    async def embed_batch(self, owner: Owner) -> bool:
        """Embed an owner's next passages without vectors; False if there were none.  Raises
        EmbedderError and StoreError."""
        name = self._name or await self._learn_name()
        state = read_state((await self._index.lookup(owner, (), 0)).state)
        if state is None:
            return False
        first = max(state.embedded_until.get(name, 0), state.passages - MAX_SEARCHED)
        end = min(state.passages, first + self._size)
        if first >= end:
            return False
        texts = await self._texts(owner, first, end)
        await self._embed(owner, name, texts)
        await self._indexer.update(owner, lambda now: _with_progress(now, state, name, first, end))
        await self._zero_changed(owner, name, texts)
        return True

    async def _zero_changed(self, owner: Owner, name: str, texts: Mapping[int, str]) -> None:
        """Set the vectors of passages to zero that were erased or edited while being embedded.

        Called after the vectors are written: a concurrent erasure either finds the vector, or its
        effect is seen here.
        """
        if texts:
            current = await self._texts(owner, min(texts), max(texts) + 1)
            gone = [number for number, text in texts.items() if current.get(number) != text]
            await put_zeros(self._index, owner, name, gone)

    async def _learn_name(self) -> str:
        """Embed an empty text to find out the model's dimensions, which are part of the name."""
        vectors = await self._embedder.embed([text_to_embed("")])
        self._name = vector_set_name(self._embedder.model, vectors.shape[1])
        return self._name

    async def _embed(self, owner: Owner, name: str, texts: Mapping[int, str]) -> None:
        if not texts:
            return
        vectors = await self._embedder.embed(list(texts.values()))
        if vector_set_name(self._embedder.model, vectors.shape[1]) != name:
            self._name = None
            raise EmbedderError("the model's vectors have another length than before")
        packed = dict(zip(texts, pack(vectors), strict=True))
        await self._index.put_vectors(owner, name, vectors.shape[1], packed)

    async def _texts(self, owner: Owner, first: int, end: int) -> dict[int, str]:
        """The texts of those passages that still exist, by number."""
        found = await self._index.rows(owner, range(first, end))
        places = {
            number: (found.sessions[int(row["session"])], int(row["seq"]), int(row["check"]))
            for number, row in enumerate(read_rows(found.data), first)
            if int(row["session"]) in found.sessions
        }
        seqs: dict[str, list[int]] = {}
        for session, seq, _ in places.values():
            seqs.setdefault(session, []).append(seq)
        messages = await self._history.passages(owner.tenant, owner.user or None, seqs)
        return {
            number: self._text(messages[session, seq])
            for number, (session, seq, check) in places.items()
            if (session, seq) in messages and check_of(messages[session, seq].card) == check
        }

    def _text(self, message: Message) -> str:
        return text_to_embed(self._own_text_of(message.wire)[0])


def _with_progress(now: State, then: State, name: str, first: int, end: int) -> State:
    """The state ``now`` after the passages from ``first`` to ``end`` of ``then`` were embedded.

    If the index was rebuilt since, or a server has lost passages, these numbers are other passages
    now, which must be embedded again.
    """
    known = now.embedded_until.get(name, 0)
    lost = now.passages <= then.passages and now.checksum != then.checksum
    if now.created_at == then.created_at and not lost:
        return now if known >= end else now.with_vectors(name, end)
    return now if known <= first else now.with_vectors(name, first)
