"""``/import``: exports of ours, and conversations from elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.audit import who
from proxy.admin.importer import Counts, Importer, Reading
from proxy.admin.objects import Object, reply
from proxy.admin.parts import AdminParts
from proxy.errors import ProxyError, invalid_import, invalid_session_id, request_timeout
from proxy.logs import audit
from proxy.memory.store import StoreError
from proxy.portable.broken import Broken
from proxy.portable.conversing import Terms
from proxy.portable.detect import ENOUGH, Format
from proxy.portable.opening import BYTE_ORDER_MARK, Limits, opened
from proxy.portable.piece import Piece
from proxy.portable.warnings import Warnings

CONFLICTS = ("skip", "error")
FORMATS: tuple[str, ...] = get_args(Format)

AT_ONCE = 100
"""Pieces that are held at once: a few, and more only where they are small."""

LINE = 2
"""A line may be so many times as long as a request's body: a message can stand in it twice, as it
came and as it is sent again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request says of its file: its format (None: look), and for conversations from
    elsewhere the session and the person."""

    format: Format | None
    session: str | None
    user: str | None
    strict: bool


class Importing:
    """``POST /import``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._access = parts, access
        server = parts.settings.server
        self._limits = Limits(LINE * server.max_body_bytes, server.max_import_bytes)
        self._patience = server.body_timeout
        self._reading = Reading()

    async def take(self, request: Request) -> Response:
        """Put in what the body has; what is there already stays as it is."""
        tenant, wanted = self._access.tenant(request), wanted_in(request)
        terms = self._terms(wanted)
        importer = Importer(self._parts, tenant, terms, self._reading, strict=wanted.strict)
        chunks = _chunks(request, self._patience)
        warnings = Warnings()
        try:
            format = await self._read(chunks, wanted, importer, warnings)
        except (Broken, ProxyError) as error:
            await self._drain(chunks)
            raise _told(error, importer.counts.sessions) from None
        finally:
            with suppress(StoreError):  # what is not asked for now is found when there is more
                await importer.end()
        counts = importer.counts
        audit("imported", **who(request), sessions=counts.sessions, messages=counts.messages)
        return reply(_import_object(format, counts, warnings))

    def _terms(self, wanted: Wanted) -> Terms:
        memory = self._parts.settings.memory
        return Terms(
            count=self._parts.counter(None),
            now=time.time(),
            media=memory.max_inline_media_bytes,
            ttl=memory.ttl,
            user=wanted.user,
            session=wanted.session,
        )

    async def _read(
        self,
        chunks: AsyncIterator[bytes],
        wanted: Wanted,
        importer: Importer,
        warnings: Warnings,
    ) -> Format:
        beginning = (await _beginning(chunks)).removeprefix(BYTE_ORDER_MARK)
        format, source = opened(beginning, wanted.format, self._limits, warnings)
        if format == "memory-proxy" and (wanted.session or wanted.user):
            raise invalid("An export says itself whose it is: leave out session and user.")
        await self._each(partial(source.feed, beginning), importer)
        async for chunk in chunks:
            await self._each(partial(source.feed, chunk), importer)
        await self._each(source.finish, importer)
        return format

    async def _each(self, read: Callable[[], Iterator[Piece]], importer: Importer) -> None:
        """Put in what is complete, a few pieces at a time; also what is before something wrong."""
        found = _Pieces(read)
        while pieces := await self._reading.run(found.next):
            for piece in pieces:
                await importer.take(piece)
        if found.broken is not None:
            raise found.broken

    async def _drain(self, chunks: AsyncIterator[bytes]) -> None:
        """Let the rest come, so that the client reads the answer instead of failing to write."""
        with suppress(ProxyError, TimeoutError):
            async with asyncio.timeout(self._patience):
                async for _ in chunks:
                    pass


def wanted_in(request: Request) -> Wanted:
    """Raises ProxyError 400."""
    query = request.query_params
    format, conflict = query.get("format", "auto"), query.get("conflict", "skip")
    if format not in ("auto", *FORMATS):
        raise invalid(f"format must be one of: auto, {', '.join(FORMATS)}.", "format")
    if conflict not in CONFLICTS:
        raise invalid(f"conflict must be one of: {', '.join(CONFLICTS)}.", "conflict")
    return Wanted(
        format=None if format == "auto" else cast(Format, format),
        session=_session(query.get("session")),
        user=asking.user_id(query.get("user"), "user"),
        strict=conflict == "error",
    )


def _session(id: str | None) -> str | None:
    if id is not None and not asking.is_id(id.encode("utf-8", "replace")):
        raise invalid_session_id("session")
    return id


async def _chunks(request: Request, patience: float) -> AsyncIterator[bytes]:
    """The body as it comes, each piece within ``patience`` seconds.

    Raises ProxyError 408, and ClientDisconnect.
    """
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(patience):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise request_timeout() from None
        yield chunk


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """As much of the body as tells its format."""
    begun = bytearray()
    while len(begun) < ENOUGH:
        chunk = await anext(chunks, None)
        if chunk is None:
            break
        begun += chunk
    return bytes(begun)


class _Pieces:
    """What some of a file completes.  ``broken`` is what is wrong behind the last piece."""

    def __init__(self, read: Callable[[], Iterator[Piece]]) -> None:
        self._read = read
        self._pieces: Iterator[Piece] | None = None
        self.broken: Broken | None = None

    def next(self) -> list[Piece]:
        """The next few pieces; none at the end."""
        if self.broken is not None:
            return []
        found: list[Piece] = []
        try:
            if self._pieces is None:
                self._pieces = self._read()
            for piece in islice(self._pieces, AT_ONCE):
                found.append(piece)
        except Broken as broken:
            self.broken = broken
        return found


def _told(error: Broken | ProxyError, sessions: int) -> ProxyError:
    """The error with what was imported all the same."""
    found = invalid_import(error.sentence) if isinstance(error, Broken) else error
    were = "1 session was" if sessions == 1 else f"{sessions} sessions were"
    return ProxyError(
        found.status,
        found.code,
        f"{found.message} {were} imported before that, and stay.",
        param=found.param,
        headers=found.headers,
    )


def _import_object(format: Format, counts: Counts, warnings: Warnings) -> Object:
    return {
        "object": "import",
        "format": format,
        "sessions": counts.sessions,
        "messages": counts.messages,
        "exchanges": counts.exchanges,
        "memories": counts.memories,
        "skipped": {"sessions": counts.skipped_sessions, "memories": counts.skipped_memories},
        "warnings": warnings.all,
    }
