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

from proxy.wire.failures import UpstreamError, UpstreamTimeout, UpstreamUnreachable, as_saturated

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
        self._cached: Sequence[AddrInfoType] = ()
        self._cached_until = 0.0
        self._lookup: asyncio.Task[Sequence[AddrInfoType]] | None = None

    async def dial(self, protocol: Callable[[], P]) -> P:
        """A new connection.  Raises UpstreamTimeout, UpstreamSaturated and UpstreamUnreachable."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._connect(protocol)
        except OSError as error:  # TimeoutError is one
            self._cached_until = 0.0
            raise _failure(error) from error

    async def _connect(self, protocol: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        open_socket = await aiohappyeyeballs.start_connection(
            await self._addresses(loop), happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY, loop=loop
        )
        open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        open_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = self._host if self._context is not None else None
        _, connection = await loop.create_connection(
            protocol, sock=open_socket, ssl=self._context, server_hostname=name
        )
        return connection

    async def _addresses(self, loop: asyncio.AbstractEventLoop) -> Sequence[AddrInfoType]:
        if loop.time() < self._cached_until:
            return self._cached
        if self._lookup is None:
            self._lookup = loop.create_task(self._look_up(loop))
            self._lookup.add_done_callback(self._lookup_done)
        return await asyncio.shield(self._lookup)

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> Sequence[AddrInfoType]:
        addresses = await loop.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        self._cached, self._cached_until = addresses, loop.time() + LOOKUP_TTL
        return addresses

    def _lookup_done(self, lookup: asyncio.Task[Sequence[AddrInfoType]]) -> None:
        self._lookup = None
        if not lookup.cancelled():
            lookup.exception()  # retrieved, or asyncio logs it if all callers were cancelled


def _failure(error: OSError) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout("no connection in time")
    if saturation := as_saturated(error):
        return saturation
    return UpstreamUnreachable("no connection")
