"""What the proxy keeps for upstreams that keep no responses: where it is, and how it is read.

It is the session's own log and nothing beside it: a response is an exchange, a conversation is a
session.  A name leads to its session by a reference (see ``proxy.memory.naming``).  Sessions that
the proxy has named itself are called by theirs; for the others one small item of the tenant's says
which it is.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from cachetools import LRUCache

from proxy.formats.native import frame_of, without_answer
from proxy.formats.responses.items import API
from proxy.formats.responses.names import AnswerName
from proxy.memory.archive import Message, Session, StoredMessage
from proxy.memory.history.branches import way_to
from proxy.memory.history.reading import oldest_first, without_texts
from proxy.memory.items import Change, ItemOwner, Items
from proxy.memory.limit import in_time
from proxy.memory.locks import Locks
from proxy.memory.model import Edited, Entry, Exchange, SessionKey, State
from proxy.memory.naming import conversation_name, named_session, reference_of
from proxy.memory.store import Store, StoreError

logger = logging.getLogger(__name__)

T = TypeVar("T")

KNOWN = 4096
"""Sessions whose names a process knows to be kept."""

SUPERSEDED: tuple[State, ...] = ("superseded",)

PAGE = 200
"""Messages that are looked at together when an answer is looked for in history."""

RENEWAL = 600.0
"""Seconds after which a name is written again: others may have erased it with its session."""

LIVES = 2.0
"""Times the time to live of a session: how long its name is kept, from when it was last written."""


class StateStore(Store, Items, Protocol):
    """A store, as far as state needs it."""


class KeptAnswer(msgspec.Struct, frozen=True):
    """A response: its exchange, the message that it was, and the ids of those it answered."""

    exchange: Exchange
    line: StoredMessage
    inputs: tuple[str, ...]

    @property
    def raw(self) -> bytes:
        """The JSON of the message as it came."""
        return self.line.body if self.line.wire is None else self.line.wire

    @property
    def nameless(self) -> Edited:
        """The same message, to which no name leads."""
        card, body, wire = self.line.card, self.line.body, self.line.wire
        body, wire = _nameless(body), None if wire is None else _nameless(wire)
        return Edited(card=card, body=body, wire=wire, was=self.raw)


def _nameless(message: bytes) -> bytes:
    return message if frame_of(message, API) is None else without_answer(message)


class _NamedSession(msgspec.Struct, frozen=True):
    session: str


class _KeptName(NamedTuple):
    """When a name was written (Unix seconds), and of the session when it began: 0 before it had."""

    written: float
    began: float

    def leads_to(self, began: float | None) -> bool:
        """Does it lead to the session that ``began`` then?  See ``keep_name`` for 0 and None."""
        return began is None or (began > 0 and self.began in (0.0, began))

    def is_fresh(self, ttl: int, now: float) -> bool:
        return now < self.written + min(RENEWAL, ttl / LIVES if ttl else RENEWAL)


class StateLog:
    """Reads and names.  ``timeout`` is for each look, in seconds."""

    def __init__(self, store: StateStore, timeout: float) -> None:
        self.store, self._timeout = store, timeout
        self._kept: LRUCache[SessionKey, _KeptName] = LRUCache(KNOWN)
        self._reading: Locks[SessionKey] = Locks()

    async def session_of(self, tenant: str, reference: str) -> SessionKey:
        """The session that names mean with this reference; there may be none of that name.

        Raises StoreError.
        """
        place = named_session(reference)
        found = (await self._soon(self.store.items_at(ItemOwner(tenant), [place]))).get(place)
        if found is None:
            return SessionKey(tenant, conversation_name(reference))
        return SessionKey(tenant, msgspec.json.decode(found.value, type=_NamedSession).session)

    async def keep_name(self, key: SessionKey, ttl: int, began: float | None = 0.0) -> None:
        """Let names lead to a session, before the first of them is told; ``ttl`` in seconds.

        ``began``: when the session did, as it was found; 0 where there was none, None where that is
        not known.  A server that has lost a session has lost its name too, so that the next one of
        its id is named anew.  Does not raise: without the name, ids are understood only where the
        request names the session as well.
        """
        reference, now = reference_of(key.session), time.time()
        if conversation_name(reference) == key.session:
            return
        kept = self._kept.get(key)
        if kept is not None and kept.is_fresh(ttl, now) and kept.leads_to(began):
            self._kept[key] = kept._replace(began=began or kept.began)
            return
        place = named_session(reference)
        change = Change(
            namespace=place.namespace,
            key=place.key,
            value=msgspec.json.encode(_NamedSession(key.session)),
            expires_at=now + LIVES * ttl if ttl else None,
        )
        try:
            await self._soon(self.store.change_items(ItemOwner(key.tenant), [change]))
        except StoreError as failure:
            logger.warning("a response is known by its session alone: %s", failure)
            return
        self._kept[key] = _KeptName(now, began or 0.0)

    async def session(self, key: SessionKey) -> Session | None:
        """Raises StoreError."""
        return await self._soon(self.store.session(key))

    async def _soon(self, looking: Awaitable[T]) -> T:
        """Raises StoreError."""
        return await in_time(looking, self._timeout)

    async def answer(self, key: SessionKey, name: AnswerName) -> KeptAnswer | None:
        """A response of this session; None if there is none, or none any more.

        Raises StoreError.
        """
        if name.reference != reference_of(key.session):
            return None
        answer = await self._answer_of(key, name.exchange)
        return None if answer is None or frame_of(answer.raw, API) is None else answer

    async def superseded(
        self, key: SessionKey, wanted: Callable[[bytes], bool]
    ) -> KeptAnswer | None:
        """An answer that is in history alone, the first that is ``wanted`` by its JSON.

        Raises StoreError.
        """
        found = await self._soon(self._superseded(key, wanted))
        return None if found is None else await self._answer_of(key, found.card.exchange)

    async def _superseded(self, key: SessionKey, wanted: Callable[[bytes], bool]) -> Message | None:
        after: str | None = "0"
        while after is not None:
            page = await self.store.messages(key, SUPERSEDED, int(after), PAGE)
            for said in page.items:
                if said.card.origin == "response" and wanted(said.wire):
                    return said
            after = page.after
        return None

    async def _answer_of(self, key: SessionKey, exchange: str) -> KeptAnswer | None:
        found = await self._soon(self.store.exchange(key, exchange))
        if found is None or not found[1]:
            return None
        said, (*inputs, last) = found
        line = await self._soon(self.store.message(key, last))
        if line is None or line.card.origin != "response":
            return None
        return KeptAnswer(said, line, tuple(inputs))

    async def way_to(self, key: SessionKey, message: str) -> tuple[Entry, ...]:
        """The way to a message: what it was said behind, and nothing else.  Empty if history has
        it not.

        The whole of a session is read for it: by one at a time.  Raises StoreError.
        """
        async with self._reading.of(key):
            session = await self.session(key)
            if session is None:
                return ()
            lines = await without_texts(self.store, key, session.end)
            exchanges = await oldest_first(self.store, key, session.end)
            return await asyncio.to_thread(way_to, lines, exchanges, message)
