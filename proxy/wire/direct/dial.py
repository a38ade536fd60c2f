"""Connects to a host: name lookup, Happy Eyeballs, TLS.

Knows sockets and no HTTP.  A lookup is cached for a short time and shared by concurrent callers.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TypeVar

import aiohappyeyeballs
from aiohappyeyeballs import AddrInfoType

from proxy.wire.failures import (
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
    saturated,
)

LOOKUP_TTL = 10.0
"""Seconds for which a name's addresses are cached."""
HAPPY_EYEBALLS_DELAY = 0.25
"""Seconds after which the next address is tried in parallel (RFC 8305)."""

P = TypeVar("P", bound=asyncio.BaseProtocol)


class Dialer:
    """Connects to one host.  ``timeout`` in seconds bounds name, TCP and TLS together."""

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, timeout: float
    ) -> None:
        self._host, self._port, self._context, self._timeout = host, port, context, timeout
        self._known: Sequence[AddrInfoType] = ()
        self._known_until = 0.0
        self._lookup: asyncio.Task[Sequence[AddrInfoType]] | None = None

    async def dial(self, protocol: Callable[[], P]) -> P:
        """A new connection.  Raises UpstreamTimeout, UpstreamSaturated and UpstreamUnreachable."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._connect(protocol)
        except OSError as error:  # TimeoutError is one
            self._known_until = 0.0
            raise _failure(error) from error

    async def _connect(self, protocol: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        connected = await aiohappyeyeballs.start_connection(
            await self._addresses(loop), happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY, loop=loop
        )
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = self._host if self._context is not None else None
        _, made = await loop.create_connection(
            protocol, sock=connected, ssl=self._context, server_hostname=name
        )
        return made

    async def _addresses(self, loop: asyncio.AbstractEventLoop) -> Sequence[AddrInfoType]:
        if loop.time() < self._known_until:
            return self._known
        if self._lookup is None:
            self._lookup = loop.create_task(self._look_up(loop))
            self._lookup.add_done_callback(self._looked_up)
        return await asyncio.shield(self._lookup)

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> Sequence[AddrInfoType]:
        found = await loop.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        self._known, self._known_until = found, loop.time() + LOOKUP_TTL
        return found

    def _looked_up(self, lookup: asyncio.Task[Sequence[AddrInfoType]]) -> None:
        self._lookup = None
        if not lookup.cancelled():
            lookup.exception()  # retrieved, or asyncio logs it if all callers were cancelled


def _failure(error: OSError) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout("no connection in time")
    if full := saturated(error):
        return full
    return UpstreamUnreachable("no connection")
