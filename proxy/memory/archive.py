"""History for the memory API and people: listing, editing, exporting and restoring sessions.

The values are as stores keep them; what they look like in the API is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from proxy.memory.model import Card, Edited, Exchange, Position, SessionKey, State, Summary

T = TypeVar("T")

OnProgress = Callable[[int, int], None]
"""Called with the number done so far, and the total."""


def do_nothing(*arguments: object) -> None:
    """A callback that ignores its arguments."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list; ``after`` is the cursor of the next part, None at the end."""

    items: tuple[T, ...]
    after: str | None = None


PAGE_BYTES = 8_000_000
"""A page of messages or sessions ends early where their texts have so many bytes, but not before
the second message."""


MAX_TITLE = 200
"""Characters."""

MAX_METADATA = 16 * 1024
"""Bytes of a session's."""


class Details(msgspec.Struct, frozen=True):
    """What people may change of a session itself.

    ``metadata`` is a JSON object, ``ttl`` is in seconds, 0 for ever.  ``system`` is the JSON list
    of its leading system messages.
    """

    title: str | None = None
    metadata: bytes = b"{}"
    ttl: int = 0
    system: bytes | None = None
    system_tokens: int = 0


class LogSize(NamedTuple):
    """Counts of a session (see ``Session``): any append, switch or removal changes one of them."""

    end: int
    messages: int
    tokens: int


class Session(msgspec.Struct, frozen=True):
    """A session as people list it.  Times are Unix seconds.

    ``window_start`` is that of the profile of the newest exchange, ``windows`` has all, by profile.
    ``end`` is the last seq that is taken; what it was taken by may be gone.  ``last`` is the newest
    exchange's id.
    """

    id: str
    user: str | None
    messages: int
    tokens: int
    window_start: int
    created_at: float
    last_active_at: float
    details: Details = Details()
    summary: Summary | None = None
    end: int = 0
    last: str | None = None
    windows: Mapping[str, Position] = msgspec.field(default_factory=dict)

    @property
    def log_size(self) -> LogSize:
        return LogSize(self.end, self.messages, self.tokens)


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message as people list it; ``wire`` is its JSON as it came."""

    seq: int
    card: Card
    state: State
    wire: bytes


class StoredMessage(NamedTuple):
    """A message with all that is stored of it.

    ``body`` is the JSON that a later request carries, ``wire`` the original JSON where it differs.
    """

    position: Position
    card: Card
    state: State
    body: bytes
    wire: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of its JSON texts."""
        return len(self.body) + len(self.wire or b"")


class PlacedExchange(NamedTuple):
    """An exchange at its place: its first seq, and the ids of its messages."""

    first: int
    exchange: Exchange
    messages: tuple[str, ...]


class SessionArchive(msgspec.Struct, frozen=True):
    """One session with all that it owns but its idempotency keys, to be put back as it was.

    ``lines`` are ascending by seq, ``exchanges`` by place, ``summaries`` newest first.
    """

    session: Session
    lines: tuple[StoredMessage, ...]
    exchanges: tuple[PlacedExchange, ...]
    summaries: tuple[Summary, ...] = ()


class Revision(msgspec.Struct, frozen=True):
    """A change that people make to a session.

    ``removed``, ``superseded`` and ``activated`` are message ids; ids that history does not know
    are ignored.  ``details`` take the place of those that ``was`` says.  With ``log_size`` it is
    for a log of this size alone.
    """

    edited: tuple[Edited, ...] = ()
    removed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()
    details: Details | None = None
    was: Details | None = None
    log_size: LogSize | None = None


class Archive(Protocol):
    """What the memory API needs of a store."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def tenants(self) -> Sequence[str]:
        """All that have sessions, sorted; some may be left in it whose sessions have expired.

        Goes through the whole store: not for requests.
        """
        ...

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        """A tenant's sessions, newest activity first; with ``user`` only this person's.

        There are fewer than ``limit`` on a page of large ones, see ``PAGE_BYTES``, and fewer or
        none where many that have expired had to be passed.
        """
        ...

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        """History by seq, ascending, beginning behind seq ``after``; the cursor is the last seq.

        There are fewer than ``limit`` on a page of long ones: see ``PAGE_BYTES``.
        """
        ...

    async def message(self, key: SessionKey, message: str) -> StoredMessage | None:
        """One message with all that is kept of it, by its id."""
        ...

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        """As ``messages`` of every state, with all that is kept of each."""
        ...

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        """An exchange and the ids of its messages, or None."""
        ...

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]:
        """Exchanges that have messages, by place, descending; the cursor is the last ``first``.

        ``before`` is a cursor, None for the newest.
        """
        ...

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        """Make all changes, or, if something is not as ``was`` says or not there, none: False.

        Every message that is edited, removed, superseded or activated counts as a change, and the
        versions of the summary that cover its place are dropped.  Where messages leave or come
        back the windows of all profiles are forgotten: they are found anew.  An exchange whose
        last message is removed is gone too.  Activity stays as it was; a new ttl counts from now.
        """
        ...

    async def restore(
        self, key: SessionKey, archived: SessionArchive, since: float | None = None
    ) -> bool:
        """Put a session back under this key: all of it, or nothing if there is one already, or if
        this session or its user was erased at ``since`` (when it was read) or later: False.

        Ids, seqs, turns, states and times are as they were, and so is its user; the counts are
        those of ``lines``; its ttl counts from now.
        """
        ...

    async def delete(self, key: SessionKey) -> bool:
        """Remove a session with all that it owns; False if there was none.

        Its own index is dropped, and its user's forgets it.  Where there is none, what is kept
        though nobody finds it goes even so: what a deletion that was cut off has left, what has
        expired, and what was being put back.
        """
        ...

    async def repair_session_list(self, tenant: str, user: str) -> Sequence[str]:
        """Add sessions of a user that ``sessions`` has lost to its list.

        Returns the ids of listed sessions that do not exist: parts of them may be left.  Scans the
        whole store: for erasures, not for other requests.
        """
        ...

    async def clear(self, tenant: str, user: str) -> None:
        """Remove what is left of a user's expired sessions and of unfinished restores."""
        ...

    async def move(self, old: str, new: str, on_progress: OnProgress = do_nothing) -> int:
        """Hand all sessions of tenant ``old`` to ``new``; the number moved.

        ``on_progress`` is called with those moved so far, and how many ``old`` has or had.
        A session id that ``new`` has already stays with ``old`` and is not counted.  Indexes do not
        move: those of ``old`` are dropped, and those of the users in ``new`` who got sessions; they
        are made anew.
        """
        ...
