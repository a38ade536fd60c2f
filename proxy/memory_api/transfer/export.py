"""Exports memory as lines, which are read from the store while the client receives them.

An export contains what existed when it began and is not deleted meanwhile, each session as it was
at one moment.  What is added meanwhile may be in it or not.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from proxy.memory.archive import Session, SessionArchive
from proxy.memory.history.reading import MAX_HELD_BYTES, PagedSession, TooLarge, read_session
from proxy.memory.items import ItemOwner, all_items
from proxy.memory.model import SessionKey
from proxy.memory.store import StoreError
from proxy.memory_api.api import Api
from proxy.memory_api.call import RawRequest, Tenant
from proxy.memory_api.conversations.sessions import SESSION, existing_session
from proxy.memory_api.conversations.sessions import TAG as SESSIONS
from proxy.memory_api.openapi.operation import NDJSON
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import OfUser, PersonAt, SessionAt
from proxy.memory_api.people.people import ONE as PERSON
from proxy.memory_api.people.people import TAG as USERS
from proxy.portable import format, lines
from proxy.recall.index import Owner, sessions_of

MARGIN = 300.0
"""Seconds by which clocks of other hosts may lag."""

PAGE = 100
"""Items that are read at once."""

ATTEMPTS = 3
"""Attempts to read a session, so that a slow call does not end a long export."""

PASSES = 5
"""Passes over the newest sessions: some become active, and move, while the list is read."""


class Exporter:
    """One export, with long timeouts.  Raises StoreError.

    ``user``: only of this person.  Holds in memory the ids of the written sessions, and at a time
    one session, one page of a large session, or one page of items.
    """

    def __init__(self, api: Api, tenant: str, user: str | None = None) -> None:
        self._store = api.long_timeout.store
        self._recall_admin = api.recall_admin
        self._tenant, self._user = tenant, user
        self._written: set[str] = set()
        self._people: set[str] = set() if user is None else {user}
        self._counts = [0, 0, 0]
        """Sessions, owners of items, items."""

    async def everything(self, now: float) -> AsyncIterator[bytes]:
        """The lines of an export of a tenant, or of one person, at ``now`` (Unix seconds)."""
        yield lines.header_line("tenant" if self._user is None else "user", now)
        for number in range(PASSES):
            before = len(self._written)
            async for line in self._sessions(0.0 if number == 0 else now - MARGIN):
                yield line
            if len(self._written) == before:
                break
        if self._user is None:
            self._people |= set(await self._store.people(self._tenant))
        for user in sorted(self._people):
            async for line in self._items_of(user):
                yield line
        if self._user is None:
            async for line in self._items_of(""):
                yield line
        yield self._end_line()

    async def session(self, session: str, now: float) -> AsyncIterator[bytes]:
        yield lines.header_line("session", now)
        async for line in self._session(session):
            yield line
        yield self._end_line()

    def _end_line(self) -> bytes:
        sessions, shelves, items = self._counts
        return lines.encode_line(format.End(sessions=sessions, shelves=shelves, items=items))

    async def _sessions(self, since: float) -> AsyncIterator[bytes]:
        """The sessions that were active since ``since`` (Unix seconds) and are not written yet."""
        async for session in sessions_of(self._store, self._tenant, self._user):
            if session.last_active_at < since:
                return
            if session.id not in self._written:
                self._written.add(session.id)
                async for line in self._session(session.id):
                    yield line

    async def _session(self, id: str) -> AsyncIterator[bytes]:
        """The lines of a session; none if it was deleted or belongs to another person by now."""
        key = SessionKey(self._tenant, id)
        try:
            archived = await self._read_with_retries(key)
        except TooLarge:
            async for line in self._paged_session(key):
                yield line
            return
        if archived is not None and self._is_included(archived.session):
            for line in lines.session_lines(archived, await self._begin_session(archived.session)):
                yield line

    async def _paged_session(self, key: SessionKey) -> AsyncIterator[bytes]:
        """The same for a session too large for memory.  Raises StoreError if it changes meanwhile,
        since the lines before cannot be taken back."""
        reading = PagedSession(self._store, key)
        session = await reading.begin()
        if session is None or not self._is_included(session):
            return
        yield lines.session_line(session, await self._begin_session(session))
        message_ids: set[str] = set()
        async for message in reading.lines(session):
            message_ids.add(message.card.id)
            yield lines.message_line(message)
        rest = await reading.end(session)
        if rest is None:
            raise StoreError("a session was changed while it was read")
        for line in lines.closing_lines(rest, message_ids):
            yield line

    def _is_included(self, session: Session) -> bool:
        return self._user in (None, session.user)

    async def _begin_session(self, session: Session) -> tuple[str, ...]:
        """Count a session and its user; returns its dismissed wishes if it has no user."""
        self._counts[0] += 1
        if session.user:
            self._people.add(session.user)
            return ()
        return await self._recall_admin.dismissed(Owner(self._tenant, session=session.id))

    async def _read_with_retries(self, key: SessionKey) -> SessionArchive | None:
        for _ in range(ATTEMPTS - 1):
            with suppress(StoreError):
                return await read_session(self._store, key, MAX_HELD_BYTES)
        return await read_session(self._store, key, MAX_HELD_BYTES)

    async def _items_of(self, user: str) -> AsyncIterator[bytes]:
        """The lines of an owner's items; none without items and dismissed wishes."""
        dismissed = await self._recall_admin.dismissed(Owner(self._tenant, user)) if user else ()
        begun = bool(dismissed)
        if begun:
            yield lines.owner_line(user, dismissed)
        count = 0
        async for item in all_items(self._store, ItemOwner(self._tenant, user), (), PAGE):
            if not begun:
                yield lines.owner_line(user, dismissed)
                begun = True
            yield lines.item_line(item)
            count += 1
        if begun:
            yield lines.encode_line(format.ShelfEnd(items=count))
            self._counts[1] += 1
            self._counts[2] += count


logger = logging.getLogger(__name__)

PIECE = 64 * 1024
"""Bytes of a piece of the answer."""

HEADERS = {"content-type": NDJSON, "cache-control": "no-store"}


TAG = "Import and export"
FILE: dict[str, Any] = {"answer": {"type": "string"}, "media": NDJSON}


@operation("GET", "/memory/v1/export", TAG, **FILE)
async def export_all(api: Api, tenant: Tenant, user: OfUser, request: RawRequest) -> Response:
    """Export everything.

    One JSON object a line.
    """
    await api.reach(tenant)
    return await _export_response(request, Exporter(api, tenant, user).everything(time.time()))


@operation("GET", f"{PERSON}/export", USERS, **FILE)
async def export_user(api: Api, owner: PersonAt, request: RawRequest) -> Response:
    """Export everything of a person.

    One JSON object a line; `POST /memory/v1/import` takes it.
    """
    await api.reach(owner.tenant)
    exporter = Exporter(api, owner.tenant, owner.user)
    return await _export_response(request, exporter.everything(time.time()))


@operation("GET", f"{SESSION}/export", SESSIONS, **FILE)
async def export_session(api: Api, key: SessionAt, request: RawRequest) -> Response:
    """Export a session.

    One JSON object a line; `POST /memory/v1/import` takes it.
    """
    await existing_session(api.store, key)
    lines = Exporter(api, key.tenant).session(key.session, time.time())
    return await _export_response(request, lines)


async def _export_response(request: Request, lines: AsyncIterator[bytes]) -> Response:
    """The response; a failure before the first piece is answered as an error."""
    if request.method == "HEAD":
        return Response(headers=HEADERS)
    pieces = _pieces(lines)
    first = await anext(pieces)
    return ExportResponse(first, pieces)


class ExportResponse(StreamingResponse):
    """Sends pieces; if the store fails meanwhile, the response is left without an end."""

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
    """The lines, joined to pieces of about ``PIECE`` bytes; at least one piece."""
    buffer = bytearray()
    async for line in lines:
        buffer += line
        if len(buffer) >= PIECE:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)
