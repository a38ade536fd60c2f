"""A server of this host, and a pipe between two connections."""

from __future__ import annotations

import asyncio
import ssl
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class TcpServer(ABC):
    """An async context manager; at its end what is under way is cancelled.

    ``port`` is 0 for a free one, and then the one it is; ``limit`` bytes a read looks ahead.
    """

    def __init__(
        self, port: int = 0, ssl_context: ssl.SSLContext | None = None, limit: int = 65536
    ) -> None:
        self.port = port
        self._ssl, self._limit = ssl_context, limit
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, limit=self._limit, ssl=self._ssl
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def origin(self) -> str:
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self.port}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._connections.discard(task)

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""


async def pipe(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, noted: bytearray | None = None
) -> None:
    """Pass on what comes until either side is gone, and note it."""
    try:
        while data := await reader.read(65536):
            if noted is not None:
                noted += data
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # one side is gone: so is the other
    finally:
        writer.close()
