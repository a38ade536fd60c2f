"""The interface of an inverted index of a user's messages, and of the history that it refers to.

An index contains no text: terms are hashes, passages refer to history by session and seq.  Texts
are read from history for each query, so that what is deleted there is never recalled.  An index can
be rebuilt from history.

A *passage* is one message.  Passages of an owner are numbered from 0 in the order in which they
were indexed; messages of a session that follow each other have neighbouring numbers.  Formats of
``rows`` and ``postings``: see ``proxy.recall.ranking.packing``; a back end need not know them,
except that a row has ``ROW_SIZE`` bytes, begins with the number of its session, and that a posting
has ``POSTING_SIZE`` bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from proxy.memory.archive import Archive, Message, Page, Session
from proxy.memory.model import SessionKey, State
from proxy.memory.store import Memory, StoreError

PAGE = 100
"""Sessions that are read at once."""


class PassageHistory(Memory, Archive, Protocol):
    """What recall reads of a store."""


async def sessions_of(
    history: Archive, tenant: str, user: str | None, after: str | None = None, at_once: int = PAGE
) -> AsyncIterator[Session]:
    """All sessions of a tenant, or of one user of it, newest activity first; with ``after`` those
    behind a cursor.  Raises StoreError."""
    while True:
        page = await history.sessions(tenant, user, after, at_once)
        for session in page.items:
            yield session
        if (after := page.after) is None:
            return


async def newest_session(
    history: Archive, tenant: str, user: str | None, after: str | None = None
) -> Session | None:
    """The first of ``sessions_of``.  Raises StoreError."""
    return await anext(sessions_of(history, tenant, user, after, at_once=1), None)


def owner_of(key: SessionKey, user: str | None) -> Owner:
    """The owner of a session's passages: its user, or the session itself if it has none."""
    return Owner(key.tenant, user=user) if user else Owner(key.tenant, session=key.session)


OwnTextOf = Callable[[bytes], tuple[str, float]]
"""From a message's JSON to the author's own text in it, and the share of the whole text that this
is."""

ROW_SIZE = 20
"""Bytes of a row; the first four are the session's number, little-endian."""

POSTING_SIZE = 6
"""Bytes of a posting."""

TERM_SIZE = 8
"""Bytes of a term: a hash, so that no word can be read from an index."""


def split_terms(terms: bytes) -> list[bytes]:
    """Split joined terms."""
    return [terms[at : at + TERM_SIZE] for at in range(0, len(terms), TERM_SIZE)]


class Owner(NamedTuple):
    """Whose passages: a person's, or those of a session that belongs to nobody in particular.

    Exactly one of ``user`` and ``session`` is set.
    """

    tenant: str
    user: str = ""
    session: str = ""


class Postings(msgspec.Struct, frozen=True):
    """Where a term occurs: in ``count`` passages, the newest of which are ``newest`` (packed)."""

    count: int
    newest: bytes


NO_POSTINGS = Postings(0, b"")


class IndexMark(NamedTuple):
    """How far a session is indexed: its messages up to ``seq``; ``number`` is the session's.

    ``check`` is of the message at ``seq``, as rows have it: another message there means that the
    session was begun anew.
    """

    number: int
    seq: int
    check: int = 0


class IndexLookup(msgspec.Struct, frozen=True):
    """The result of one lookup in an index.  The default is that of an index that does not exist.

    ``state`` is what the owner's last batch left, opaque to a back end.  ``postings`` are in the
    order of the terms asked for.  ``mark`` is the one of the session asked for.
    """

    revision: int = 0
    state: bytes = b""
    postings: tuple[Postings, ...] = ()
    mark: IndexMark | None = None


class WholeIndex(NamedTuple):
    """All terms of an index in ascending order, and every posting of each.

    ``head`` is a lookup of no terms.  ``terms`` and ``postings`` are joined; ``sizes`` are the
    bytes of each term's postings.
    """

    head: IndexLookup
    terms: bytes
    sizes: Sequence[int]
    postings: bytes


class Rows(msgspec.Struct, frozen=True):
    """Rows by passage number, joined in the order asked for, and the names of their sessions.

    A number that has no row is ``ROW_SIZE`` zero bytes.  A session that was dropped has no name.
    """

    data: bytes = b""
    sessions: Mapping[int, str] = msgspec.field(default_factory=dict)


class IndexBatch(msgspec.Struct, frozen=True):
    """What is added to an index for one session, all of it or nothing.

    ``revision`` is the one the batch was made for; the index's own is one higher afterwards.
    ``rows`` are appended; the first of them gets the number ``first``, which is how many rows there
    are.  ``postings`` are appended to those of each term.  ``mark`` replaces the session's mark
    (None leaves it).  ``ttl`` in seconds: the index lives at least so long from now on, 0 for ever.
    ``session_created_at`` is when the session did, in Unix seconds: it may have been erased since
    it was read.  None: the batch is of no session.
    """

    revision: int
    state: bytes
    session: str
    mark: IndexMark | None
    first: int = 0
    rows: bytes = b""
    postings: Mapping[bytes, bytes] = msgspec.field(default_factory=dict)
    ttl: int = 0
    session_created_at: float | None = None


class Unindexed(NamedTuple):
    """What an index may lack of a session.

    ``lookup`` is one of its owner's index, without terms.  ``page`` begins with the message that
    the mark names, the last indexed one: whether it is still the same tells if the mark holds.
    """

    session: Session
    lookup: IndexLookup
    page: Page[Message]


def after_mark(mark: IndexMark | None) -> int:
    """The seq after which the messages of an ``Unindexed`` begin."""
    return mark.seq - 1 if mark else 0


class IndexLost(StoreError):
    """Part of an index is lost: it must be dropped and rebuilt."""


class Index(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def unindexed(
        self, key: SessionKey, states: Collection[State], limit: int
    ) -> Unindexed | None:
        """What the index lacks of a session: at most ``limit`` messages in these states.

        None if there is no such session.  Takes as few round trips as the store can do it in.
        """
        ...

    async def lookup(
        self, owner: Owner, terms: Sequence[bytes], newest: int, session: str = ""
    ) -> IndexLookup:
        """State, mark of ``session``, and at most the ``newest`` postings of each term.

        One round trip.
        """
        ...

    async def whole_index(
        self, owner: Owner, max_terms: int, session: str = ""
    ) -> WholeIndex | None:
        """All terms and postings; None if there is no index, if it has more than ``max_terms``
        terms (or blocks of postings, in a back end that counts these), or if it changes meanwhile.

        Two round trips at most.
        """
        ...

    async def rows(self, owner: Owner, numbers: Sequence[int]) -> Rows:
        """Rows by number, in one round trip."""
        ...

    async def write(self, owner: Owner, batch: IndexBatch) -> bool:
        """Add a batch; False, and nothing left of it, if the index has another revision, or the
        session is gone or another that began later.  Raises IndexLost.
        """
        ...

    async def drop_session(self, owner: Owner, session: str) -> None:
        """Delete a session's name and mark: its passages are then dead, and it can be indexed
        anew."""
        ...

    async def drop(self, owner: Owner, state: bytes = b"") -> None:
        """Delete an index, vectors included.

        If there was one, ``state`` replaces its state at once: lookups return it, with revision 0,
        until a new index is begun.
        """
        ...

    async def put_vectors(
        self, owner: Owner, model: str, size: int, vectors: Mapping[int, bytes]
    ) -> None:
        """Store vectors of ``size`` bytes by passage number, beside those of other models."""
        ...

    async def vectors(self, owner: Owner, model: str, size: int, first: int, last: int) -> bytes:
        """The vectors of the passages ``first`` to ``last - 1``, joined.

        Passages without one are zero bytes; it may end before the last such ones.
        """
        ...


class SearchableStore(Archive, Index, Protocol):
    """A store, as far as ``read_unindexed`` needs it."""


async def read_unindexed(
    store: SearchableStore, key: SessionKey, states: Collection[State], limit: int
) -> Unindexed | None:
    """``Index.unindexed`` for a store that needs a round trip for each part.  Raises StoreError."""
    session = await store.session(key)
    if session is None:
        return None
    lookup = await store.lookup(owner_of(key, session.user), (), 0, session=key.session)
    return Unindexed(
        session, lookup, await store.messages(key, states, after_mark(lookup.mark), limit)
    )
