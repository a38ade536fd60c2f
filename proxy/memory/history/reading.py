"""Reads a whole session, page by page, as it was at one moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from proxy.memory.archive import (
    Archive,
    Page,
    PlacedExchange,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.model import NO_PROFILE, LoadOptions, SessionKey, Summary
from proxy.memory.store import Store, StoreError, StoreTimeout

T = TypeVar("T")

PAGES = (200, 20, 1)
"""Messages or exchanges that are read at once: fewer if a store takes too long, as messages can be
large."""

MAX_HELD_BYTES = 8_000_000
"""Bytes of messages up to which a session may be held in memory, however many there are."""

ATTEMPTS = 5
"""Attempts to read a session that is changed meanwhile."""

NEWEST_TURN = LoadOptions(profile=NO_PROFILE, max_messages=0)
"""The log is the newest turn."""

WHOLE_LOG = LoadOptions(profile=NO_PROFILE, whole=True, max_messages=0)
"""The cards of the entire log, and the text of its newest turn."""


class TooLarge(Exception):
    """A session has more bytes of messages than allowed."""


async def read_session(
    store: Store, key: SessionKey, most: int | None = None
) -> SessionArchive | None:
    """A session with all that it owns except its idempotency keys; None if there is none.

    Without messages recorded meanwhile.  Raises StoreError, also if it is edited faster than it can
    be read, and TooLarge if its messages have more than ``most`` bytes.
    """
    for _ in range(ATTEMPTS):
        reading = PagedSession(store, key)
        session = await reading.begin()
        if session is None:
            return None
        lines = await _collect_lines(reading.lines(session), most)
        found = await reading.end(session, lines)
        if found is not None:
            return found
    raise StoreError("a session was changed again and again while it was read")


async def _collect_lines(
    lines: AsyncIterator[StoredMessage], most: int | None
) -> tuple[StoredMessage, ...]:
    held: list[StoredMessage] = []
    size = 0
    async for line in lines:
        size += line.size
        if most is not None and size > most:
            raise TooLarge
        held.append(line)
    return tuple(held)


class PagedSession:
    """Reads a session page by page: its fields, then its messages, then the rest, if nothing was
    edited meanwhile.  All methods raise StoreError."""

    def __init__(self, store: Store, key: SessionKey) -> None:
        self._store, self._key = store, key
        self._changes = 0
        self._summaries: tuple[Summary, ...] = ()

    async def begin(self) -> Session | None:
        """The session, None if it does not exist."""
        self._changes = (await self._store.load(self._key, NEWEST_TURN)).changes
        session = await self._store.session(self._key)
        if session is not None:
            # At the beginning: later versions may cover what is said meanwhile.
            self._summaries = tuple(await self._store.summaries(self._key))
        return session

    def lines(self, session: Session) -> AsyncIterator[StoredMessage]:
        return all_lines(self._store, self._key, session.end)

    async def end(
        self, session: Session, lines: tuple[StoredMessage, ...] = ()
    ) -> SessionArchive | None:
        """The session with these of its messages; None if it was edited or deleted since
        ``begin``."""
        exchanges = await exchanges_oldest_first(self._store, self._key, session.end)
        if (await self._store.load(self._key, NEWEST_TURN)).changes != self._changes:
            return None
        # A session that is gone has 0 changes, as has a new one of its id: they look unchanged.
        still = await self._store.session(self._key)
        if still is None or still.created_at != session.created_at:
            return None
        return SessionArchive(session, lines, tuple(exchanges), self._summaries)


async def exchanges_oldest_first(store: Archive, key: SessionKey, end: int) -> list[PlacedExchange]:
    """All exchanges of messages up to seq ``end``.  Raises StoreError."""
    return [placed async for placed in all_exchanges(store, key, end)][::-1]


async def lines_without_texts(store: Archive, key: SessionKey, end: int) -> list[StoredMessage]:
    """All messages up to seq ``end`` without their texts, page by page.  Raises StoreError."""
    lines = all_lines(store, key, end)
    return [line._replace(body=b"", wire=None) async for line in lines]


async def all_lines(
    store: Archive, key: SessionKey, end: int, after: int = 0
) -> AsyncIterator[StoredMessage]:
    """The messages after seq ``after`` up to ``end``, ascending.  Raises StoreError."""
    while True:
        page = await _read_page(partial(store.lines, key, after))
        for line in page.items:
            if line.position.seq > end:
                return
            yield line
        if page.after is None:
            return
        after = int(page.after)


async def all_exchanges(store: Archive, key: SessionKey, end: int) -> AsyncIterator[PlacedExchange]:
    """The exchanges that begin up to seq ``end``, descending.  Raises StoreError."""
    before: int | None = end + 1
    while True:
        page = await _read_page(partial(store.exchanges, key, before))
        for placed in page.items:
            yield placed
        if page.after is None:
            return
        before = int(page.after)


async def _read_page(read: Callable[[int], Awaitable[Page[T]]]) -> Page[T]:
    """A page of as many rows as the store can read in time.  Raises StoreError."""
    for limit in PAGES[:-1]:
        with suppress(StoreTimeout):
            return await read(limit)
    return await read(PAGES[-1])
