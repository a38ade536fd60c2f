"""``/import``: exports of ours, and conversations from elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Annotated, cast

import msgspec
from msgspec.structs import replace
from starlette.requests import Request

from proxy import errors as refusals
from proxy.errors import ProxyError, request_timeout
from proxy.logs import audit
from proxy.memory.store import StoreError
from proxy.memory_api.access import log_fields
from proxy.memory_api.api import Api
from proxy.memory_api.call import Call, FromRequest, RawRequest, Tenant
from proxy.memory_api.errors import (
    invalid_import,
    invalid_session_id,
    session_exists,
    session_owner_mismatch,
)
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import JSON, NDJSON, Body, Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import DRY_RUN, OF_USER, SESSION, an_id, one_of
from proxy.memory_api.shapes.overview import Imported, Skipped
from proxy.memory_api.threads import Threads
from proxy.memory_api.transfer.import_sessions import ImportCounts, Importer
from proxy.portable.detection import BYTE_ORDER_MARK, DETECTION_BYTES, Limits, open_source
from proxy.portable.names import FORMATS, Format
from proxy.portable.session_conversion import ImportOptions
from proxy.portable.source import ImportedPart, InvalidFile, Warnings
from proxy.wire.limits import SMALL, UNCOUNTED, Reservation

CONFLICTS = ("skip", "error")

PART_RESERVE = 16 * 1024 * 1024
"""Bytes reserved for an incomplete session of over ``SMALL`` bytes; a larger one takes a multiple
of it."""

MIN_RECEIVED_BYTES = 1024 * 1024
"""Bytes that must arrive within the timeout of a body, so that a slow client does not occupy
memory for long."""

AT_ONCE = 100
"""Parts that are read at once."""

LINE_FACTOR = 2
"""A line may be this many times as long as a request's body: it can contain a message twice, as
received and as it is sent again."""


class ImportRequest(msgspec.Struct, frozen=True):
    """The parameters of an import: the format (None: detect it), and the session and user for
    conversations of other programs."""

    format: Format | None
    session: str | None
    user: str | None


def _format(call: Call) -> Format | None:
    format = one_of("format", ("auto", *FORMATS))(call)
    return None if format == "auto" else cast(Format, format)


def _strict(call: Call) -> bool:
    return one_of("conflict", CONFLICTS)(call) == "error"


OfFormat = Annotated[
    Format | None,
    Parameter(
        "format",
        "query",
        "What the file is.",
        {"enum": ["auto", *FORMATS], "default": "auto"},
        example="openai",
        read=_format,
    ),
]
IntoSession = Annotated[
    str | None,
    Parameter(
        "session",
        "query",
        "The session of a conversation.",
        SESSION.schema,
        read=an_id("session", refusals.invalid_session_id),
        errors=(invalid_session_id,),
    ),
]
ImportUser = Annotated[
    str | None,
    replace(OF_USER, description="Whose conversations or memories they are.", example=None),
]
DryRunImport = Annotated[bool, replace(DRY_RUN, description="Only count what would be imported.")]
Strict = Annotated[
    bool,
    Parameter(
        "conflict",
        "query",
        "What to do about a session that is there already.",
        {"enum": [*CONFLICTS], "default": CONFLICTS[0]},
        read=_strict,
    ),
]


class Upload:
    """A file while it is uploaded.  Memory for it is reserved in ``reservation`` as it arrives."""

    def __init__(self, request: Request, reservation: Reservation, timeout: float) -> None:
        self.chunks, self.timeout = _chunks(request, timeout), timeout
        self._reservation, self._waiting = reservation, 0

    async def count_received(self, size: int, *, complete: bool) -> None:
        """Reserve memory for ``size`` more bytes, or release all if they are ``complete``.

        Waits for up to ``PART_RESERVE`` bytes.  Raises ProxyError 503 ``overloaded``.
        """
        self._waiting = size if complete else self._waiting + size
        needed = _bytes_to_reserve(self._waiting)
        if needed <= PART_RESERVE:
            return await self._reservation.reserve_body(needed)
        self._reservation.shrink_body(needed)
        self._reservation.grow_body(needed)


def _bytes_to_reserve(waiting: int) -> int:
    """The bytes to reserve for ``waiting`` bytes of an incomplete part."""
    if waiting <= SMALL:
        return 0 if waiting <= UNCOUNTED else SMALL
    return -(-waiting // PART_RESERVE) * PART_RESERVE


def _file(call: Call) -> Upload:
    return Upload(call.request, call.reservation, call.api.settings.server.body_timeout)


OfFile = Annotated[Upload, FromRequest(_file)]
FILE = Body(
    {JSON: {"type": ["object", "array"]}, NDJSON: {"type": "string"}},
    examples={
        "openai": {
            "messages": [
                {"role": "user", "content": "Good morning."},
                {"role": "assistant", "content": "Good morning!"},
            ]
        }
    },
)


@operation(
    "POST",
    "/memory/v1/import",
    "Import and export",
    body=FILE,
    errors=(invalid_import, session_owner_mismatch, session_exists),
    creates_tenant=True,
)
async def import_file(
    api: Api,
    tenant: Tenant,
    format: OfFormat,
    session: IntoSession,
    user: ImportUser,
    strict: Strict,
    dry_run: DryRunImport,
    request: RawRequest,
    file: OfFile,
) -> Imported:
    """Import a file.

    An export of this proxy, or conversations and memories from elsewhere. Importing the same file
    twice changes nothing. What was complete before something broken stays imported.
    `dry_run=true` reads all of the file, and only counts.
    """
    import_request = ImportRequest(format, session, user)
    options = _options(api, import_request)
    warnings, error_answer = Warnings(), None
    importer = Importer(api, tenant, options, warnings, strict=strict, dry_run=dry_run)
    try:
        await api.reach(tenant)
        format_found = await _read(api, file, import_request, importer, warnings)
        await importer.end()
    except (InvalidFile, ProxyError) as error:
        # A new error: the traceback of the old one holds what was read of the file.
        error_answer = _with_count_imported(error, 0 if dry_run else importer.counts.sessions)
    finally:
        # However it ends: also where the client leaves, or the store fails.
        if not dry_run:
            _audit(request, importer.counts)
        with suppress(StoreError, ProxyError):  # of what came before something wrong
            await importer.end()
    if error_answer is not None:
        await _drain(file)
        raise error_answer
    counts = importer.counts
    return Imported(
        format=format_found,
        dry_run=dry_run,
        sessions=counts.sessions,
        messages=counts.messages,
        exchanges=counts.exchanges,
        memories=counts.memories,
        skipped=Skipped(sessions=counts.skipped_sessions, memories=counts.skipped_memories),
        warnings=warnings.all,
    )


def _audit(request: Request, counts: ImportCounts) -> None:
    """Log what was imported, if anything."""
    if counts.sessions or counts.memories:
        much = {
            "sessions": counts.sessions,
            "messages": counts.messages,
            "memories": counts.memories,
        }
        audit("imported", **log_fields(request), **much)


def _options(api: Api, import_request: ImportRequest) -> ImportOptions:
    memory = api.settings.memory
    return ImportOptions(
        count=api.counter(None),
        now=time.time(),
        media=memory.max_inline_media_bytes,
        ttl=memory.ttl,
        user=import_request.user,
        session=import_request.session,
    )


async def _read(
    api: Api, file: Upload, import_request: ImportRequest, importer: Importer, warnings: Warnings
) -> Format:
    server = api.settings.server
    is_atomic = api.learned.kinds.is_reserved
    limits = Limits(LINE_FACTOR * server.max_body_bytes, server.max_import_bytes, is_atomic)
    beginning = (await _beginning(file.chunks)).removeprefix(BYTE_ORDER_MARK)
    format, source = open_source(beginning, import_request.format, limits, warnings)
    if format == "memory-proxy" and (import_request.session or import_request.user):
        raise invalid("An export says itself whose it is: leave out session and user.")
    await _import_parts(api.reading, partial(source.feed, beginning), importer)
    async for chunk in file.chunks:
        any_complete = await _import_parts(api.reading, partial(source.feed, chunk), importer)
        await file.count_received(len(chunk), complete=any_complete)
    await _import_parts(api.reading, source.finish, importer)
    return format


async def _import_parts(
    reading: Threads, read: Callable[[], Iterator[ImportedPart]], importer: Importer
) -> bool:
    """Import the complete parts, some at a time, also those before an error; returns whether there
    were any.  Raises InvalidFile."""
    parts, any_complete = _PartReader(read), False
    while pieces := await reading.run(parts.next):
        any_complete = True
        for piece in pieces:
            await importer.take(piece)
    if parts.error is not None:
        raise parts.error
    return any_complete


async def _drain(file: Upload) -> None:
    """Read the rest, so that the client reads the answer instead of failing to write."""
    with suppress(ProxyError, TimeoutError):
        async with asyncio.timeout(file.timeout):
            async for _ in file.chunks:
                pass


async def _chunks(request: Request, timeout: float) -> AsyncIterator[bytes]:
    """The body as it comes: ``MIN_RECEIVED_BYTES`` or its end within each ``timeout`` seconds of
    waiting for it.

    Raises ProxyError 408, and ClientDisconnect.
    """
    stream, clock = request.stream(), asyncio.get_running_loop().time
    time_left, received = timeout, 0
    while True:
        began = clock()
        try:
            async with asyncio.timeout(time_left):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise request_timeout() from None
        time_left, received = time_left - (clock() - began), received + len(chunk)
        if received >= MIN_RECEIVED_BYTES:
            time_left, received = timeout, 0
        yield chunk


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """The first bytes of the body, enough to detect its format."""
    buffer = bytearray()
    while len(buffer) < DETECTION_BYTES:
        chunk = await anext(chunks, None)
        if chunk is None:
            break
        buffer += chunk
    return bytes(buffer)


class _PartReader:
    """Reads the parts that a chunk completes.  ``error``: why reading ended, None without error."""

    def __init__(self, read: Callable[[], Iterator[ImportedPart]]) -> None:
        self._read = read
        self._pieces: Iterator[ImportedPart] | None = None
        self.error: InvalidFile | None = None

    def next(self) -> list[ImportedPart]:
        """The next parts; none at the end."""
        if self.error is not None:
            return []
        pieces: list[ImportedPart] = []
        try:
            if self._pieces is None:
                self._pieces = self._read()
            for piece in islice(self._pieces, AT_ONCE):
                pieces.append(piece)
        except InvalidFile as broken:
            self.error = broken
        return pieces


def _with_count_imported(error: InvalidFile | ProxyError, sessions: int) -> ProxyError:
    """The error, with the number of imported sessions in its message."""
    answer = refusals.invalid_import(error.sentence) if isinstance(error, InvalidFile) else error
    were = "1 session was" if sessions == 1 else f"{sessions} sessions were"
    return ProxyError(
        answer.status,
        answer.code,
        f"{answer.message} {were} imported before that, and stay.",
        param=answer.param,
        headers=answer.headers,
    )
