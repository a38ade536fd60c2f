"""Embedders: an OpenAI-compatible ``POST /embeddings``, or a model on this host.

The latter is the extra ``memory-proxy[semantic]``: Google's multilingual Universal Sentence Encoder
(Yang et al. 2019), 16 languages, as a package of numpy arrays: no service, no download, some 2 ms
for a short text on one core.  It runs in a process of its own: most of it is Python, which in a
thread would delay every chat.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from struct import pack
from typing import Protocol

import msgspec
import numpy as np

from proxy.recall.ranking.packing import Array
from proxy.wire.api import bearer, is_permanent_refusal, json_headers
from proxy.wire.failures import UpstreamError
from proxy.wire.upstream import Upstream

logger = logging.getLogger(__name__)

MAX_CHARACTERS = 2_000
"""Characters of a text that are embedded: the rest of a long message moves its vector little, costs
as much again, and models refuse or cut what is longer."""


class EmbedderError(Exception):
    """There are no vectors now, but a later request may succeed."""


class EmbedderRefused(EmbedderError):
    """Permanent: no request succeeds before a key, a model's name or the text is changed."""


class EmbedderFailed(EmbedderError):
    """Status 500: a server's own failure, or what some servers answer to a text that is too long or
    that their model fails at."""


class Embedder(Protocol):
    """Makes vectors of texts; only vectors of the same model are compared."""

    @property
    def model(self) -> str:
        """The model's id."""
        ...

    @property
    def at_once(self) -> int:
        """Texts of a batch in the background."""
        ...

    async def embed(self, texts: Sequence[str]) -> Array:
        """One vector per text: float32[n texts, dimensions]; zeros for a text that is refused while
        others are accepted.  Raises EmbedderError."""
        ...


def text_to_embed(text: str) -> str:
    """The part of a text to embed; never empty or with lone surrogates, which APIs refuse."""
    return text[:MAX_CHARACTERS].strip().encode("utf-8", "replace").decode() or PROBE


MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Limit on a response, three times a batch of the largest vectors in the longest notation."""

TIMEOUT = 30.0
"""Seconds for a response in the background; a chat waits less."""

MAX_COMPONENT = 1e18
"""The largest component that is accepted: its square must be finite in float32."""


SHORTENED_LENGTHS = (500, 125)
"""Lengths, in characters, to which a refused text is cut, in this order: many models take at most
512 tokens."""

PROBE = "."
"""A text that every model takes."""


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class RemoteEmbedder:
    """An Embedder that calls an API; ``dimensions`` 0: the model's default."""

    at_once = 32

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
            return await self._request_vectors(texts)
        except (EmbedderRefused, EmbedderFailed) as failure:
            await self._zero_vector()  # before each text is tried for itself
            # A failure that does not recur is not due to a text.
            again = self._embed_part if isinstance(failure, EmbedderFailed) else self._embed_halves
            rows = await again(texts)
        if without := len(rows) - np.count_nonzero(rows.any(axis=1)):
            logger.warning("texts that are found by their words alone: %d are refused", without)
        return rows

    async def _zero_vector(self) -> Array:
        """A zero vector, for a text without one.  Raises EmbedderError if the model refuses any
        text: then the fault is not in those it refused."""
        return np.zeros_like(await self._request_vectors([PROBE]))

    async def _embed_halves(self, texts: Sequence[str]) -> Array:
        """Embed texts of which at least one is refused, by halves."""
        middle = len(texts) // 2
        if not middle:
            return await self._embed_shortened(texts[0])
        parts = [await self._embed_part(half) for half in (texts[:middle], texts[middle:])]
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbedderError("embeddings: vectors of two lengths")
        return np.concatenate(parts)

    async def _embed_part(self, texts: Sequence[str]) -> Array:
        try:
            return await self._request_vectors(texts)
        except (EmbedderRefused, EmbedderFailed):
            return await self._embed_halves(texts)

    async def _embed_shortened(self, text: str) -> Array:
        """Embed as much of a text as the model takes."""
        for part in dict.fromkeys(
            text_to_embed(text[:size]) for size in SHORTENED_LENGTHS if size < len(text)
        ):
            with suppress(EmbedderRefused, EmbedderFailed):
                return await self._request_vectors([part])
        return await self._zero_vector()  # again: the model may take no text at all by now

    async def _request_vectors(self, texts: Sequence[str]) -> Array:
        """Send one request; returns its vectors."""
        try:
            async with asyncio.timeout(self._timeout):
                return self._read(await self._ask(texts), len(texts))
        except UpstreamError as error:
            raise EmbedderError(f"embeddings: {error}") from error
        except TimeoutError as error:
            raise EmbedderError("embeddings: no answer in time") from error

    async def _ask(self, texts: Sequence[str]) -> bytes:
        """Send a request; returns the body of a successful response."""
        body: dict[str, object] = {"model": self._model, "input": texts}
        if self._dimensions:
            body["dimensions"] = self._dimensions
        raw = msgspec.json.encode(body)
        reply = await self._upstream.send("POST", b"/embeddings", self._headers, raw)
        try:
            if is_permanent_refusal(reply.status):
                raise EmbedderRefused(f"embeddings: refused with status {reply.status}")
            if reply.status != 200:
                kind = EmbedderFailed if reply.status == 500 else EmbedderError
                raise kind(f"embeddings: answered with status {reply.status}")
            return await reply.read(MAX_RESPONSE_BYTES)
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
        if not np.abs(rows).max() <= MAX_COMPONENT:
            raise EmbedderError("embeddings: numbers that no direction has")
        return rows.astype(np.float32)


NAME = "local:universal-sentence-encoder"
DIMENSIONS = 512

COMMAND = (sys.executable, "-m", "proxy.recall.semantic.encoder")


class UniversalEmbedder:
    """An Embedder that runs a model in a process; ``command`` starts it."""

    model = NAME
    at_once = 16
    """Each text is sent to the process by itself, so that a question need not wait for a batch."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._process: Process | None = None
        self._lock = asyncio.Lock()
        self._running: set[asyncio.Task[Array]] = set()

    def __repr__(self) -> str:
        return f"<UniversalEmbedder {self._process}>"

    async def open(self) -> None:
        """Start the process and load the model, which takes a second.  A failure is logged, and the
        start is repeated when there is something to embed."""
        try:
            await self.embed([PROBE])
        except EmbedderError as error:
            logger.warning("recall goes by words alone for now: %s", error)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await self._stop()

    async def embed(self, texts: Sequence[str]) -> Array:
        return np.stack([await self._one(text) for text in texts])

    async def _one(self, text: str) -> Array:
        # A cancelled caller leaves a pending reply, to be read before the next text is sent.
        task = asyncio.create_task(self._exchange(text))
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Array]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen, even if nobody waits for it any more

    async def _exchange(self, text: str) -> Array:
        body = text.encode("utf-8", "replace")
        async with self._lock:
            try:
                process = self._process or await self._start()
                assert process.stdin and process.stdout  # both are pipes
                process.stdin.write(pack("<I", len(body)) + body)
                await process.stdin.drain()
                data = await process.stdout.readexactly(4 * DIMENSIONS)
            except (OSError, EOFError) as error:
                await self._stop()
                raise EmbedderError("the process of the encoder has ended") from error
        return np.frombuffer(data, "<f4")

    async def _start(self) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=PIPE, stdout=PIPE
        )
        return self._process

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
