"""History for the memory API: listing, editing, exporting and restoring sessions.

The values are as stores have them; the API's objects are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from proxy.memory.model import Card, Exchange, MessageEdit, Position, SessionKey, State, Summary

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
"""A page of messages or sessions ends early once its texts have so many bytes, but has at least
one message."""


MAX_TITLE = 200
"""Characters of a title."""

MAX_METADATA = 16 * 1024
"""Bytes of a session's metadata."""


class Details(msgspec.Struct, frozen=True):
    """The fields of a session that people may change.

    ``metadata`` is a JSON object; ``ttl`` is in seconds, 0 for ever.  ``system`` is the JSON list
    of its leading system messages.
    """

    title: str | None = None
    metadata: bytes = b"{}"
    ttl: int = 0
    system: bytes | None = None
    system_tokens: int = 0


class LogSize(NamedTuple):
    """Counts of a session (see ``Session``); any append, switch or removal changes one of them."""

    end: int
    messages: int
    tokens: int


class Session(msgspec.Struct, frozen=True):
    """A session in a list.  Times are Unix seconds.

    ``window_start`` is that of the newest exchange's profile, ``windows`` has all by profile.
    ``end`` is the highest seq ever used; its message may be gone.  ``last`` is the newest
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
    """A message in a list; ``wire`` is its original JSON."""

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
    def original(self) -> bytes:
        """The original JSON."""
        return self.body if self.wire is None else self.wire

    @property
    def size(self) -> int:
        """Bytes of its JSON texts."""
        return len(self.body) + len(self.wire or b"")


class PlacedExchange(NamedTuple):
    """An exchange with its first seq and the ids of its messages."""

    first: int
    exchange: Exchange
    messages: tuple[str, ...]


class SessionArchive(msgspec.Struct, frozen=True):
    """One session with all that it owns except its idempotency keys, from which it can be restored.

    ``lines`` are ascending by seq, ``exchanges`` by ``first``, ``summaries`` newest first.
    """

    session: Session
    lines: tuple[StoredMessage, ...]
    exchanges: tuple[PlacedExchange, ...]
    summaries: tuple[Summary, ...] = ()


class Revision(msgspec.Struct, frozen=True):
    """A change that people make to a session.

    ``removed``, ``superseded`` and ``activated`` are message ids; unknown ids are ignored.
    ``details`` replace the present ones, which must equal ``expected_details``.  With ``log_size``
    the change is made only if the log has this size.
    """

    edited: tuple[MessageEdit, ...] = ()
    removed: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    activated: tuple[str, ...] = ()
    details: Details | None = None
    expected_details: Details | None = None
    log_size: LogSize | None = None


class Archive(Protocol):
    """What the memory API needs of a store."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def tenants(self) -> Sequence[str]:
        """The tenants that have sessions, sorted; may include some whose sessions have expired.

        Scans the whole store: not for requests.
        """
        ...

    async def sessions(
        self, tenant: str, user: str | None, after: str | None, limit: int
    ) -> Page[Session]:
        """A tenant's sessions, newest activity first; with ``user`` only this person's.

        A page may have fewer than ``limit`` sessions if they are large, see ``PAGE_BYTES``, and
        fewer or none if many expired ones were skipped.
        """
        ...

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        """History by seq, ascending, after seq ``after``; the cursor is the last seq.

        A page of long messages may have fewer than ``limit``: see ``PAGE_BYTES``.
        """
        ...

    async def message(self, key: SessionKey, message: str) -> StoredMessage | None:
        """One message with all that is stored of it, by its id."""
        ...

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        """As ``messages`` of every state, with all that is stored of each."""
        ...

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        """An exchange and the ids of its messages, or None."""
        ...

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]:
        """Exchanges that have messages, by ``first``, descending; the cursor is the last ``first``.

        ``before`` is a cursor; None begins with the newest.
        """
        ...

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        """Make all changes; or none, and return False, if something is missing or differs from
        ``expected_details``.

        Each message that is edited, removed, superseded or activated counts as a change, and drops
        the versions of the summary that cover it.  If messages leave or come back, the windows of
        all profiles are cleared and computed anew.  An exchange without messages is removed.
        ``last_active_at`` stays; a new ttl counts from now.
        """
        ...

    async def restore(
        self, key: SessionKey, archived: SessionArchive, since: float | None = None
    ) -> bool:
        """Restore a session under this key.  Does nothing and returns False if there is one
        already, or if the session or its user was erased at ``since`` (when it was read) or later.

        Ids, seqs, turns, states, times and user are as they were; the counts are those of
        ``lines``; its ttl counts from now.
        """
        ...

    async def delete(self, key: SessionKey) -> bool:
        """Remove a session with all that it owns; False if there was none.

        Its own index is dropped, and it is removed from its user's.  Leftovers are removed too, if
        the session does not exist: of an interrupted deletion, an expired session, or an unfinished
        restore.
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
        """Move all sessions of tenant ``old`` to ``new``; returns the number moved.

        ``on_progress`` is called with the number moved so far, and the total of ``old``.  A session
        whose id ``new`` has already stays with ``old`` and is not counted.  Indexes are not moved:
        those of ``old``, and those of users in ``new`` who got sessions, are dropped and rebuilt.
        """
        ...
