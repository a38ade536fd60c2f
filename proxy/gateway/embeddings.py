"""The client of an OpenAI-compatible ``POST /embeddings``, for recall's vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import numpy as np

from proxy.recall.embedding import EmbedderError, EmbedderRefused
from proxy.recall.packing import Array
from proxy.wire.api import bearer, json_headers, refuses
from proxy.wire.upstream import Upstream, UpstreamError

AT_ONCE = 32
"""Texts in a request of the background."""

LIMIT = 32 * 1024 * 1024
"""Bytes of an answer: a batch of the largest vectors in the longest notation is a third of that."""

TIMEOUT = 30.0
"""Seconds for an answer, whoever waits for it; a chat waits for less."""

LARGEST = 1e18
"""A component; the square of one has to be a number too."""


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class RemoteEmbedder:
    """See :class:`proxy.recall.embedding.Embedder`.  ``dimensions`` 0: as many as the model has."""

    at_once = AT_ONCE

    def __init__(
        self,
        upstream: Upstream,
        model: str,
        dimensions: int,
        key: str | None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._upstream, self._model, self._dimensions = upstream, model, dimensions
        self._headers = json_headers(bearer(key))
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"<RemoteEmbedder {self._model}>"

    @property
    def model(self) -> str:
        return self._model

    async def embed(self, texts: Sequence[str]) -> Array:
        try:
            async with asyncio.timeout(self._timeout):
                return self._read(await self._ask(texts), len(texts))
        except UpstreamError as error:
            raise EmbedderError(f"embeddings: {error}") from error
        except TimeoutError as error:
            raise EmbedderError("embeddings: no answer in time") from error

    async def _ask(self, texts: Sequence[str]) -> bytes:
        """The body of a good answer."""
        body: dict[str, object] = {"model": self._model, "input": texts}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        raw = msgspec.json.encode(body)
        reply = await self._upstream.send("POST", b"/embeddings", self._headers, raw)
        try:
            if refuses(reply.status):
                raise EmbedderRefused(f"embeddings: refused with status {reply.status}")
            if reply.status != 200:
                raise EmbedderError(f"embeddings: answered with status {reply.status}")
            return await reply.read(LIMIT)
        finally:
            await reply.close()

    def _read(self, body: bytes, count: int) -> Array:
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError as error:
            raise EmbedderError("embeddings: the answer is not one") from error
        found = [each.embedding for each in sorted(answer.data, key=lambda each: each.index)]
        lengths = {len(each) for each in found}
        if len(found) != count or len(lengths) != 1 or 0 in lengths:
            raise EmbedderError(f"embeddings: not one vector for each of {count} texts")
        if self._dimensions and lengths != {self._dimensions}:
            raise EmbedderError(f"embeddings: {lengths.pop()} dimensions, not {self._dimensions}")
        rows = np.array(found)
        if not np.abs(rows).max() <= LARGEST:
            raise EmbedderError("embeddings: numbers that no direction has")
        return rows.astype(np.float32)
