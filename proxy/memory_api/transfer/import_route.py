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
from proxy.memory_api.call import Call, From, RawRequest, Tenant
from proxy.memory_api.errors import (
    invalid_import,
    invalid_session_id,
    session_exists,
    session_owner_mismatch,
)
from proxy.memory_api.fields import invalid
from proxy.memory_api.openapi.operation import JSON, NDJSON, Body, Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import DRY_RUN, OF_USER, SESSION, an_id
from proxy.memory_api.shapes.overview import Imported, Skipped
from proxy.memory_api.threads import Threads
from proxy.memory_api.transfer.import_sessions import ImportCounts, Importer
from proxy.portable.detection import BYTE_ORDER_MARK, DETECTION_BYTES, Limits, open_source
from proxy.portable.names import FORMATS, Format
from proxy.portable.session_conversion import ImportOptions
from proxy.portable.source import ImportedPart, InvalidFile, Warnings
from proxy.wire.limits import SMALL, UNCOUNTED, Reservation

CONFLICTS = ("skip", "error")

HOLDS = 16 * 1024 * 1024
"""Bytes of the room for bodies that a session of over ``SMALL`` bytes takes as long as it is not
complete; one that is larger than that so much again for each part of it."""

MIN_RECEIVED_BYTES = 1024 * 1024
"""Bytes that must come within the time for a body, so that nobody holds room for longer by sending
a byte now and then."""

AT_ONCE = 100
"""Pieces that are held at once: a few, and more only where they are small."""

LINE = 2
"""A line may be so many times as long as a request's body: a message can stand in it twice, as it
came and as it is sent again."""


class ImportRequest(msgspec.Struct, frozen=True):
    """What a request says of its file: its format (None: look), and for conversations from
    elsewhere the session and the person."""

    format: Format | None
    session: str | None
    user: str | None


def _format(call: Call) -> Format | None:
    format = call.request.query_params.get("format", "auto")
    if format not in ("auto", *FORMATS):
        raise invalid(f"format must be one of: auto, {', '.join(FORMATS)}.", "format")
    return None if format == "auto" else cast(Format, format)


def _strict(call: Call) -> bool:
    conflict = call.request.query_params.get("conflict", "skip")
    if conflict not in CONFLICTS:
        raise invalid(f"conflict must be one of: {', '.join(CONFLICTS)}.", "conflict")
    return conflict == "error"


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
Whose = Annotated[
    str | None,
    replace(OF_USER, description="Whose conversations or memories they are.", example=None),
]
Tried = Annotated[bool, replace(DRY_RUN, description="Only count what would be imported.")]
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


class Incoming:
    """A file as it comes.  ``held`` is its room: of what has come, whatever was declared."""

    def __init__(self, request: Request, held: Reservation, timeout: float) -> None:
        self.chunks, self.timeout = _chunks(request, timeout), timeout
        self._held, self._waiting = held, 0

    async def took(self, size: int, *, complete: bool) -> None:
        """So many more bytes, and whether they complete something: what does not is held.

        Waits for up to ``HOLDS``.  Raises ProxyError 503 ``overloaded`` if there is no room for it.
        """
        self._waiting = size if complete else self._waiting + size
        takes = _room_for(self._waiting)
        if takes <= HOLDS:
            return await self._held.reserve_body(takes)
        self._held.shrink_body(takes)
        self._held.grow_body(takes)


def _room_for(waiting: int) -> int:
    """The bytes to hold for so many that complete nothing yet."""
    if waiting <= SMALL:
        return 0 if waiting <= UNCOUNTED else SMALL
    return -(-waiting // HOLDS) * HOLDS


def _file(call: Call) -> Incoming:
    return Incoming(call.request, call.held, call.api.settings.server.body_timeout)


OfFile = Annotated[Incoming, From(_file)]
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
    founds=True,
)
async def import_file(
    api: Api,
    tenant: Tenant,
    format: OfFormat,
    session: IntoSession,
    user: Whose,
    strict: Strict,
    dry_run: Tried,
    request: RawRequest,
    file: OfFile,
) -> Imported:
    """Import a file.

    An export of this proxy, or conversations and memories from elsewhere. Importing the same file
    twice changes nothing. What was complete before something broken stays imported.
    `dry_run=true` reads all of the file, and only counts.
    """
    wanted = ImportRequest(format, session, user)
    options = _options(api, wanted)
    warnings, refused = Warnings(), None
    importer = Importer(api, tenant, options, warnings, strict=strict, dry_run=dry_run)
    try:
        await api.reach(tenant)
        found = await _read(api, file, wanted, importer, warnings)
        await importer.end()
    except (InvalidFile, ProxyError) as error:
        # It holds what was read of the file, which goes before the rest comes.
        refused = _with_count_imported(error, 0 if dry_run else importer.counts.sessions)
    finally:
        # However it ends: also where the client leaves, or the store fails.
        if not dry_run:
            _audit(request, importer.counts)
        with suppress(StoreError, ProxyError):  # of what came before something wrong
            await importer.end()
    if refused is not None:
        await _drain(file)
        raise refused
    counts = importer.counts
    return Imported(
        format=found,
        dry_run=dry_run,
        sessions=counts.sessions,
        messages=counts.messages,
        exchanges=counts.exchanges,
        memories=counts.memories,
        skipped=Skipped(sessions=counts.skipped_sessions, memories=counts.skipped_memories),
        warnings=warnings.all,
    )


def _audit(request: Request, put: ImportCounts) -> None:
    """Where anything was put."""
    if put.sessions or put.memories:
        much = {"sessions": put.sessions, "messages": put.messages, "memories": put.memories}
        audit("imported", **log_fields(request), **much)


def _options(api: Api, wanted: ImportRequest) -> ImportOptions:
    memory = api.settings.memory
    return ImportOptions(
        count=api.counter(None),
        now=time.time(),
        media=memory.max_inline_media_bytes,
        ttl=memory.ttl,
        user=wanted.user,
        session=wanted.session,
    )


async def _read(
    api: Api, file: Incoming, wanted: ImportRequest, importer: Importer, warnings: Warnings
) -> Format:
    server = api.settings.server
    learned = api.learned.kinds.is_reserved
    limits = Limits(LINE * server.max_body_bytes, server.max_import_bytes, learned)
    beginning = (await _beginning(file.chunks)).removeprefix(BYTE_ORDER_MARK)
    format, source = open_source(beginning, wanted.format, limits, warnings)
    if format == "memory-proxy" and (wanted.session or wanted.user):
        raise invalid("An export says itself whose it is: leave out session and user.")
    await _each(api.reading, partial(source.feed, beginning), importer)
    async for chunk in file.chunks:
        some = await _each(api.reading, partial(source.feed, chunk), importer)
        await file.took(len(chunk), complete=some)
    await _each(api.reading, source.finish, importer)
    return format


async def _each(
    reading: Threads, read: Callable[[], Iterator[ImportedPart]], importer: Importer
) -> bool:
    """Put in what is complete, a few pieces at a time; also what is before something wrong.
    Whether there was something."""
    found, some = _Pieces(read), False
    while pieces := await reading.run(found.next):
        some = True
        for piece in pieces:
            await importer.take(piece)
    if found.broken is not None:
        raise found.broken
    return some


async def _drain(file: Incoming) -> None:
    """Let the rest come, so that the client reads the answer instead of failing to write."""
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
    left, came = timeout, 0
    while True:
        began = clock()
        try:
            async with asyncio.timeout(left):
                chunk = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise request_timeout() from None
        left, came = left - (clock() - began), came + len(chunk)
        if came >= MIN_RECEIVED_BYTES:
            left, came = timeout, 0
        yield chunk


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """As much of the body as tells its format."""
    begun = bytearray()
    while len(begun) < DETECTION_BYTES:
        chunk = await anext(chunks, None)
        if chunk is None:
            break
        begun += chunk
    return bytes(begun)


class _Pieces:
    """What some of a file completes.  ``broken`` is what is wrong behind the last piece."""

    def __init__(self, read: Callable[[], Iterator[ImportedPart]]) -> None:
        self._read = read
        self._pieces: Iterator[ImportedPart] | None = None
        self.broken: InvalidFile | None = None

    def next(self) -> list[ImportedPart]:
        """The next few pieces; none at the end."""
        if self.broken is not None:
            return []
        found: list[ImportedPart] = []
        try:
            if self._pieces is None:
                self._pieces = self._read()
            for piece in islice(self._pieces, AT_ONCE):
                found.append(piece)
        except InvalidFile as broken:
            self.broken = broken
        return found


def _with_count_imported(error: InvalidFile | ProxyError, sessions: int) -> ProxyError:
    """The error with what was imported all the same."""
    found = refusals.invalid_import(error.sentence) if isinstance(error, InvalidFile) else error
    were = "1 session was" if sessions == 1 else f"{sessions} sessions were"
    return ProxyError(
        found.status,
        found.code,
        f"{found.message} {were} imported before that, and stay.",
        param=found.param,
        headers=found.headers,
    )
