"""Reading a whole session, page by page, as it was at one moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from proxy.memory.archive import Page, PlacedExchange, Session, SessionArchive, StoredMessage
from proxy.memory.model import Ask, SessionKey, Snapshot
from proxy.memory.store import Store, StoreError, StoreTimeout

T = TypeVar("T")

PAGES = (200, 20, 1)
"""Messages or exchanges that are asked for at once: fewer where a store takes too long for so many,
as messages can be large."""

ATTEMPTS = 5
"""How often a session is read again that people change meanwhile."""

NEWEST_TURN = Ask(profile=".", max_messages=0)
"""No profile is called so, and no window begins anywhere for it: the log is the newest turn."""

WHOLE_LOG = Ask(profile=".", whole=True, max_messages=0)
"""The cards of the entire log, and the text of its newest turn."""


class SessionReader(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]: ...

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]: ...


class TooLarge(Exception):
    """A session has more text than there is to be room for."""


async def read_session(
    store: Store, key: SessionKey, most: int | None = None
) -> SessionArchive | None:
    """A session with all that it owns but its idempotency keys; None if there is none.

    What is said while it is read is not in it.  Raises StoreError, also where people change it
    faster than it can be read, and TooLarge where its messages have more than ``most`` bytes.
    """
    for _ in range(ATTEMPTS):
        before = await store.load(key, NEWEST_TURN)
        session = await store.session(key)
        if session is None:
            return None
        summaries = tuple(await store.summaries(key))
        lines = await _lines(store, key, session.end, most)
        exchanges = await _exchanges(store, key, session.end)
        if (await store.load(key, NEWEST_TURN)).changes == before.changes:
            return SessionArchive(session, lines, exchanges, summaries)
    raise StoreError("a session was changed again and again while it was read")


async def _lines(
    store: SessionReader, key: SessionKey, end: int, most: int | None
) -> tuple[StoredMessage, ...]:
    lines: list[StoredMessage] = []
    size = 0
    async for line in all_lines(store, key, end):
        size += len(line.body) + len(line.wire or b"")
        if most is not None and size > most:
            raise TooLarge
        lines.append(line)
    return tuple(lines)


async def _exchanges(store: SessionReader, key: SessionKey, end: int) -> tuple[PlacedExchange, ...]:
    """Ascending."""
    newest_first = [placed async for placed in all_exchanges(store, key, end)]
    return tuple(reversed(newest_first))


class LargeSession:
    """One that is not held: its messages are told page by page, and at their end whether all of it
    is as it was at one moment."""

    def __init__(self, store: Store, key: SessionKey) -> None:
        self._store, self._key = store, key
        self._changes = 0

    async def begin(self) -> Session | None:
        """Itself; None if it is not there.  Raises StoreError."""
        self._changes = (await self._store.load(self._key, NEWEST_TURN)).changes
        return await self._store.session(self._key)

    def lines(self, session: Session) -> AsyncIterator[StoredMessage]:
        """Its messages.  Raises StoreError."""
        return all_lines(self._store, self._key, session.end)

    async def end(self, session: Session) -> SessionArchive:
        """All else of it.  Raises StoreError, also where it was changed since it began."""
        exchanges = await _exchanges(self._store, self._key, session.end)
        summaries = tuple(await self._store.summaries(self._key))
        if (await self._store.load(self._key, NEWEST_TURN)).changes != self._changes:
            raise StoreError("a session was changed while it was read")
        return SessionArchive(session, (), exchanges, summaries)


async def all_lines(
    store: SessionReader, key: SessionKey, end: int, after: int = 0
) -> AsyncIterator[StoredMessage]:
    """The messages behind seq ``after`` up to ``end``, ascending.  Raises StoreError."""
    while True:
        page = await _in_time(partial(store.lines, key, after))
        for line in page.items:
            if line.position.seq > end:
                return
            yield line
        if page.after is None:
            return
        after = int(page.after)


async def all_exchanges(
    store: SessionReader, key: SessionKey, end: int
) -> AsyncIterator[PlacedExchange]:
    """The exchanges that begin up to seq ``end``, descending.  Raises StoreError."""
    before: int | None = end + 1
    while True:
        page = await _in_time(partial(store.exchanges, key, before))
        for placed in page.items:
            yield placed
        if page.after is None:
            return
        before = int(page.after)


async def _in_time(read: Callable[[int], Awaitable[Page[T]]]) -> Page[T]:
    """A page of as many as a store can give in time.  Raises StoreError."""
    for limit in PAGES[:-1]:
        with suppress(StoreTimeout):
            return await read(limit)
    return await read(PAGES[-1])
