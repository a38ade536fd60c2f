"""A session's history as people read it, in Redis.  Off the path of a request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from proxy.memory.archive import Line, Message, Page, Placed, Session
from proxy.memory.model import Exchange, SessionKey, State
from proxy.stores.places import locate
from proxy.stores.redis_base import RedisBase
from proxy.stores.redis_keys import field_of, session_keys
from proxy.stores.redis_link import bounded, checked
from proxy.stores.redis_scripts import Script
from proxy.stores.redis_values import (
    read_exchange,
    read_lines,
    read_messages,
    read_placed,
    read_session,
    read_stored,
)

SCANNED_AT_ONCE = 1000
"""Places in history that one script looks at, so that it never blocks the server for long."""

EVERY = (1, 1)
"""Messages of both states."""


class RedisHistory(RedisBase):
    """See :class:`proxy.memory.archive.Archive`; a page takes as many steps as it needs."""

    async def session(self, key: SessionKey) -> Session | None:
        meta = session_keys(key)[0]
        read = self._link.many([(meta, ("HGETALL", meta))])
        (fields,) = await bounded(read, self._timeout)
        return read_session(key.session, fields)

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        wanted = (int("active" in states), int("superseded" in states))
        rows: list[Message] = []
        at = b"%d" % after
        while at and any(wanted) and len(rows) <= limit:
            arguments = (at, limit + 1 - len(rows), *wanted, SCANNED_AT_ONCE, 0)
            at, *found = await self._look(self._scripts.messages, key, arguments)
            rows += read_messages(*found)
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].seq) if len(rows) > limit else None)

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[Line]:
        rows: list[Line] = []
        at = b"%d" % after
        while at and len(rows) <= limit:
            arguments = (at, limit + 1 - len(rows), *EVERY, SCANNED_AT_ONCE, 1)
            at, *found = await self._look(self._scripts.messages, key, arguments)
            rows += read_lines(*found)
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].position.seq) if len(rows) > limit else None)

    async def message(self, key: SessionKey, message: str) -> Line | None:
        place = locate(message)
        value = await self._stored(key, place.exchange) if place else None
        seq = read_stored(value).span.seq(place.number) if place and value else None
        if seq is None:
            return None
        arguments = (seq - 1, 1, *EVERY, 1, 1)
        _, *found = await self._look(self._scripts.messages, key, arguments)
        # Between the two looks the session may have become another.
        return next((line for line in read_lines(*found) if line.card.id == message), None)

    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        return await bounded(self._exchange(key, exchange), self._timeout)

    async def _exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        _, cards, _, _, exchanges, *_ = session_keys(key)
        fields = (f"x{exchange}", f"u{exchange}")
        ((value, usage),) = checked(await self._link.run(exchanges, ("HMGET", exchanges, *fields)))
        if value is None:
            return None
        span = read_stored(value).span
        places = [(cards, ("HEXISTS", cards, field_of(span.first + n))) for n in range(span.size)]
        known = await self._link.many(places)
        ids = tuple(f"{exchange}.{n}" for n, there in enumerate(known) if there)
        return read_exchange(value, usage), ids

    async def exchanges(self, key: SessionKey, before: int | None, limit: int) -> Page[Placed]:
        rows: list[Placed] = []
        at = b"" if before is None else b"%d" % before
        more = True
        while more and len(rows) <= limit:
            arguments = (at, limit + 1 - len(rows), SCANNED_AT_ONCE)
            at, *found = await self._look(self._scripts.exchanges, key, arguments)
            rows += read_placed(found)
            more = bool(at)
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].first) if len(rows) > limit else None)

    async def _look(self, script: Script, key: SessionKey, arguments: Sequence[Any]) -> Any:
        work = self._scripts.read(script, session_keys(key), arguments)
        return await bounded(work, self._timeout)

    async def _stored(self, key: SessionKey, exchange: str) -> bytes | None:
        """The value of an exchange, see read_stored."""
        exchanges = session_keys(key)[4]
        read = self._link.many([(exchanges, ("HGET", exchanges, f"x{exchange}"))])
        (value,) = await bounded(read, self._timeout)
        return value if value is None else bytes(value)
