"""The embedder on this host, with the extra ``memory-proxy[semantic]``.

Google's multilingual Universal Sentence Encoder (Yang et al. 2019), 16 languages, as a package of
numpy arrays: no service, no download, some 2 ms for a short text on one core.  It computes in a
process of its own: most of it is Python, which in a thread would hold up every chat.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from struct import pack

import numpy as np

from proxy.recall.embedding import EmbedderError
from proxy.recall.packing import Array

logger = logging.getLogger(__name__)

NAME = "local:universal-sentence-encoder"
DIMENSIONS = 512

AT_ONCE = 16
"""Texts of the background; each goes to the process alone, so that a question gets in between."""

COMMAND = (sys.executable, "-m", "proxy.recall.encoder")


class UniversalEmbedder:
    """See :class:`proxy.recall.embedding.Embedder`.  ``command`` starts the process."""

    model = NAME
    at_once = AT_ONCE

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._running: set[asyncio.Task[Array]] = set()

    def __repr__(self) -> str:
        return f"<UniversalEmbedder {self._process}>"

    async def open(self) -> None:
        """Start the process and load the model, a second; what does not start is told and tried
        again when there is something to embed."""
        try:
            await self.embed(["."])
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
        # Whoever gives up leaves an answer under way, which must be read before the next text.
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
        async with self._turn:
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
