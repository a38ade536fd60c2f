"""``/export``, ``/users/{id}/export`` and ``/sessions/{id}/export``: memory as a file of lines."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.exporter import Exporter
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import the_session
from proxy.memory.store import StoreError

logger = logging.getLogger(__name__)

PIECE = 64 * 1024
"""Bytes that are sent at once."""

HEADERS = {"content-type": "application/x-ndjson", "cache-control": "no-store"}


class Exporting:
    """All of them read while they write, and as fast as the client takes it."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access

    async def tenant(self, request: Request) -> Response:
        """Everything of the tenant; ``?user=`` has only this person's."""
        tenant = self._access.tenant(request)
        user = asking.user_id(request.query_params.get("user"), "user")
        return await self._answer(
            request, Exporter(self._parts, tenant, user).everything(time.time())
        )

    async def user(self, request: Request) -> Response:
        """Everything of a person."""
        tenant, user = self._access.tenant(request), asking.user_in_path(request)
        return await self._answer(
            request, Exporter(self._parts, tenant, user).everything(time.time())
        )

    async def session(self, request: Request) -> Response:
        """One session."""
        key = self._access.key(request)
        await the_session(self._parts.store, key)
        lines = Exporter(self._parts, key.tenant).session(key.session, time.time())
        return await self._answer(request, lines)

    async def _answer(self, request: Request, lines: AsyncIterator[bytes]) -> Response:
        """What fails before the first piece is there can still be answered as an error."""
        if request.method == "HEAD":
            return Response(headers=HEADERS)
        pieces = _pieces(lines)
        first = await anext(pieces)
        return Export(first, pieces)


class Export(StreamingResponse):
    """Sends piece by piece; a store that fails meanwhile leaves it without an end."""

    def __init__(self, first: bytes, others: AsyncIterator[bytes]) -> None:
        super().__init__(others, headers=HEADERS)
        self._first, self._others = first, others

    async def stream_response(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        await self._send(send, self._first)
        try:
            async for piece in self._others:
                await self._send(send, piece)
        except StoreError as failure:
            logger.warning("an export was cut off, its store cannot be used: %s", failure)
            return  # the server breaks a connection whose answer has no end
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, piece: bytes) -> None:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        await asyncio.sleep(0)  # a client that takes all at once must not keep others waiting


async def _pieces(lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """At least one."""
    held = bytearray()
    async for line in lines:
        held += line
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    yield bytes(held)
