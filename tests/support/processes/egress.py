"""A forward proxy of the smallest kind: CONNECT, and requests with an absolute URI."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from tests.support.tcp import TcpServer, pipe


class EgressProxy(TcpServer):
    """``heads`` are the request heads that it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[bytes] = []

    @property
    def url(self) -> str:
        return self.origin

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target, _ = head.split(b" ", 2)
        place = target.decode() if method == b"CONNECT" else urlsplit(target.decode()).netloc
        host, _, port = place.rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(head)
        try:
            await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer))
        finally:
            writer.transport.abort()
            far_writer.transport.abort()
