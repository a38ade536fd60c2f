"""A wire that is listened to: what a client says and hears, as bytes, unchanged."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Relay:
    """An async context manager in front of a port of this host.

    ``said`` is what came from clients, ``heard`` what they were told; of connections side by side
    the pieces are mixed.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()
        self.said, self.heard = bytearray(), bytearray()

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(
                _pass_on(reader, far_writer, self.said), _pass_on(far_reader, writer, self.heard)
            )
        finally:
            writer.transport.abort()
            far_writer.transport.abort()
            self._tasks.discard(task)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, noted: bytearray
) -> None:
    try:
        while data := await reader.read(65536):
            noted += data
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # one side is gone: so is the other
    finally:
        writer.close()
