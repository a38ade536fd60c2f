"""Reads responses and conversations from the store, for upstreams that keep none.

They are not stored separately: a response is an exchange, a conversation is a session.  Their ids
contain a reference to the session (see ``proxy.memory.naming``), which is part of the id of a
session that the proxy has named itself; for others an item of the tenant maps it to the session.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from cachetools import LRUCache

from proxy.formats.native import frame_of, without_answer_id
from proxy.formats.responses.items import API
from proxy.formats.responses.names import ResponseId
from proxy.learning.collection import put_change
from proxy.memory.archive import Message, Session, StoredMessage
from proxy.memory.history.branches import path_to
from proxy.memory.history.reading import exchanges_oldest_first, lines_without_texts
from proxy.memory.items import ItemOwner, Items
from proxy.memory.limit import read_within
from proxy.memory.locks import Locks
from proxy.memory.model import Entry, Exchange, MessageEdit, SessionKey, State
from proxy.memory.naming import conversation_name, reference_of, reference_place
from proxy.memory.store import Store, StoreError

logger = logging.getLogger(__name__)

T = TypeVar("T")

MAX_REFERENCES = 4096
"""Sessions whose stored reference a process remembers."""

SUPERSEDED: tuple[State, ...] = ("superseded",)

SEARCH_PAGE = 200
"""Messages read at a time when a superseded answer is searched."""

RENEWAL_SECONDS = 600.0
"""Seconds after which a reference is written again: other processes may have erased it."""

REFERENCE_TTL_FACTOR = 2.0
"""A stored reference's time to live, as a multiple of its session's."""


class StateStore(Store, Items, Protocol):
    """The parts of a store that are used here."""


class StoredAnswer(msgspec.Struct, frozen=True):
    """A response: its exchange, its message, and the ids of its input messages."""

    exchange: Exchange
    stored_message: StoredMessage
    inputs: tuple[str, ...]

    @property
    def raw(self) -> bytes:
        """The JSON of the message as the upstream sent it."""
        return self.stored_message.original

    @property
    def without_id(self) -> MessageEdit:
        """The edit that removes the response's id from the message."""
        stored = self.stored_message
        wire = None if stored.wire is None else _without_id(stored.wire)
        return MessageEdit(
            card=stored.card, body=_without_id(stored.body), wire=wire, replaced_wire=self.raw
        )


def _without_id(message: bytes) -> bytes:
    return message if frame_of(message, API) is None else without_answer_id(message)


class _ReferencedSession(msgspec.Struct, frozen=True):
    session: str


class _StoredReference(NamedTuple):
    """When a reference was ``written`` and its session ``began`` (Unix seconds, 0: not yet)."""

    written: float
    began: float

    def is_of_session(self, began: float | None) -> bool:
        """Whether it is of the session that began then; see ``store_reference`` for 0 and None."""
        return began is None or (began > 0 and self.began in (0.0, began))

    def is_fresh(self, ttl: int, now: float) -> bool:
        """Whether it need not be written again; ``ttl`` is the session's, 0 for none."""
        seconds = ttl / REFERENCE_TTL_FACTOR if ttl else RENEWAL_SECONDS
        return now < self.written + min(RENEWAL_SECONDS, seconds)


class StateLog:
    """Reads kept responses, and stores their sessions' references.

    ``timeout``: seconds per store call.
    """

    def __init__(self, store: StateStore, timeout: float) -> None:
        self.store, self._timeout = store, timeout
        self._stored_references: LRUCache[SessionKey, _StoredReference] = LRUCache(MAX_REFERENCES)
        self._reading: Locks[SessionKey] = Locks()

    async def session_of(self, tenant: str, reference: str) -> SessionKey:
        """The key of the session with this reference; the session may not exist.  Raises
        StoreError."""
        place = reference_place(reference)
        items = await self._with_timeout(self.store.items_at(ItemOwner(tenant), [place]))
        item = items.get(place)
        if item is None:
            return SessionKey(tenant, conversation_name(reference))
        return SessionKey(tenant, msgspec.json.decode(item.value, type=_ReferencedSession).session)

    async def store_reference(self, key: SessionKey, ttl: int, began: float | None = 0.0) -> None:
        """Store which session a reference belongs to, before an id with it is sent to the client.

        ``ttl`` in seconds.  ``began``: when the loaded session began; 0 for a new one, None if
        unknown.  A store that has lost a session has lost its reference too, so that of a session
        that began at another time is written again.  Does not raise: without a stored reference,
        ids are understood only in requests that also have the session's header.
        """
        reference, now = reference_of(key.session), time.time()
        if conversation_name(reference) == key.session:
            return
        known = self._stored_references.get(key)
        if known is not None and known.is_fresh(ttl, now) and known.is_of_session(began):
            self._stored_references[key] = known._replace(began=began or known.began)
            return
        expiry = now + REFERENCE_TTL_FACTOR * ttl if ttl else None
        referenced = _ReferencedSession(key.session)
        change = put_change(reference_place(reference), referenced, None, expiry)
        try:
            await self._with_timeout(self.store.change_items(ItemOwner(key.tenant), [change]))
        except StoreError as failure:
            logger.warning("a response is known by its session alone: %s", failure)
            return
        self._stored_references[key] = _StoredReference(now, began or 0.0)

    async def session(self, key: SessionKey) -> Session | None:
        """Raises StoreError."""
        return await self._with_timeout(self.store.session(key))

    async def _with_timeout(self, reading: Awaitable[T]) -> T:
        """Raises StoreError."""
        return await read_within(reading, self._timeout)

    async def answer(self, key: SessionKey, name: ResponseId) -> StoredAnswer | None:
        """A response of this session; None if there is none, or none any more.  Raises
        StoreError."""
        if name.reference != reference_of(key.session):
            return None
        answer = await self._answer_of(key, name.exchange)
        return None if answer is None or frame_of(answer.raw, API) is None else answer

    async def superseded(
        self, key: SessionKey, matches: Callable[[bytes], bool]
    ) -> StoredAnswer | None:
        """The first superseded answer for whose JSON ``matches`` is true.  Raises StoreError."""
        message = await self._with_timeout(self._find_superseded(key, matches))
        return None if message is None else await self._answer_of(key, message.card.exchange)

    async def _find_superseded(
        self, key: SessionKey, matches: Callable[[bytes], bool]
    ) -> Message | None:
        after: str | None = "0"
        while after is not None:
            page = await self.store.messages(key, SUPERSEDED, int(after), SEARCH_PAGE)
            for message in page.items:
                if message.card.origin == "response" and matches(message.wire):
                    return message
            after = page.after
        return None

    async def _answer_of(self, key: SessionKey, exchange: str) -> StoredAnswer | None:
        record = await self._with_timeout(self.store.exchange(key, exchange))
        if record is None or not record[1]:
            return None
        recorded_exchange, (*inputs, last) = record
        message = await self._with_timeout(self.store.message(key, last))
        if message is None or message.card.origin != "response":
            return None
        return StoredAnswer(recorded_exchange, message, tuple(inputs))

    async def branch_to(self, key: SessionKey, message: str) -> tuple[Entry, ...]:
        """The branch that ends with a message; empty if history does not have the message.

        Reads the whole session, so calls for one session run one at a time.  Raises StoreError.
        """
        async with self._reading.of(key):
            session = await self.session(key)
            if session is None:
                return ()
            messages = await lines_without_texts(self.store, key, session.end)
            exchanges = await exchanges_oldest_first(self.store, key, session.end)
            return await asyncio.to_thread(path_to, messages, exchanges, message)
