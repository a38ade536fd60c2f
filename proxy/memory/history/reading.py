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


async def read_session(store: Store, key: SessionKey) -> SessionArchive | None:
    """A session with all that it owns but its idempotency keys; None if there is none.

    What is said while it is read is not in it.  Raises StoreError, also where people change it
    faster than it can be read.
    """
    for _ in range(ATTEMPTS):
        before = await store.load(key, NEWEST_TURN)
        session = await store.session(key)
        if session is None:
            return None
        summaries = tuple(await store.summaries(key))
        lines = tuple([line async for line in all_lines(store, key, session.end)])
        exchanges = [placed async for placed in all_exchanges(store, key, session.end)]
        if (await store.load(key, NEWEST_TURN)).changes == before.changes:
            return SessionArchive(session, lines, tuple(reversed(exchanges)), summaries)
    raise StoreError("a session was changed again and again while it was read")


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
