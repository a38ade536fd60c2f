"""A wire that is listened to: what a client says and hears, as bytes, unchanged."""

from __future__ import annotations

import asyncio

from tests.support.tcp import TcpServer, pipe


class Relay(TcpServer):
    """In front of a port of this host.

    ``said`` is what came from clients, ``heard`` what they were told; of connections side by side
    the pieces are mixed.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self._behind = port
        self.said, self.heard = bytearray(), bytearray()

    @property
    def url(self) -> str:
        return self.origin

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        try:
            await asyncio.gather(
                pipe(reader, far_writer, self.said), pipe(far_reader, writer, self.heard)
            )
        finally:
            writer.transport.abort()
            far_writer.transport.abort()
