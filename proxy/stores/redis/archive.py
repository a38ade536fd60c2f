"""Reading, revising and restoring a session's history and summaries in Redis, for the memory API.

Not used by chat requests.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from proxy.memory.archive import (
    PAGE_BYTES,
    Message,
    Page,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.model import MAX_VERSIONS, Exchange, SessionKey, State, Summary, message_id
from proxy.memory.store import StoreError
from proxy.recall.index import owner_of
from proxy.stores.common.history import parse_message_id
from proxy.stores.common.rules import session_subject, user_subjects
from proxy.stores.common.steps import revision_steps
from proxy.stores.redis.base import (
    RedisBase,
    bounded,
    field_of,
    format_time,
    limits_concurrency,
    list_keys,
    mark_key,
    session_keys,
    with_timeout,
)
from proxy.stores.redis.codec import (
    batches,
    pack_version,
    read_exchange,
    read_lines,
    read_messages,
    read_placed_exchanges,
    read_session,
    read_stored,
    read_version,
    restored_values,
    revise_arguments,
)
from proxy.stores.redis.index import RedisIndex
from proxy.stores.redis.lists import RedisLists
from proxy.stores.redis.wire import raise_errors


class RedisSummaries(RedisBase):
    """See :class:`proxy.memory.store.Summaries`."""

    @with_timeout("read")
    async def summaries(self, key: SessionKey) -> Sequence[Summary]:
        keys = session_keys(key)
        meta, versions = keys[0], keys[-1]
        # Keys of one session expire together, but not in the same instant on every server.
        replies = await self._link.run(meta, ("EXISTS", meta), ("HVALS", versions))
        exists, found = raise_errors(replies)
        found = map(read_version, found if exists else ())
        return sorted(found, key=lambda summary: summary.version, reverse=True)

    async def put_summary(
        self,
        key: SessionKey,
        summary: Summary,
        after: int,
        changes: int | None,
        since: float | None = None,
        began: float | None = None,
        seen: str | None = None,
    ) -> bool:
        packed = pack_version(replace(summary, version=after + 1))
        at = "" if changes is None else changes
        keys = [*session_keys(key), mark_key(session_subject(key))]
        times = format_time(since), format_time(began)
        arguments = (packed, after, at, MAX_VERSIONS, *times, seen or "")
        return bool(await self._write_script(self._scripts.summary_put, keys, arguments))

    async def drop_summaries(self, key: SessionKey) -> bool:
        return bool(await self._write_script(self._scripts.summary_drop, session_keys(key), ()))

    async def mark_stalled(self, key: SessionKey, began: float | None = None) -> None:
        await self._write_script(
            self._scripts.summary_stall, session_keys(key), (format_time(began),)
        )


SCANNED_AT_ONCE = 1000
"""Places in history that one script reads, so that it never blocks the server for long."""

BOTH_STATES = (1, 1)
"""Arguments for active and superseded messages."""

STAGED_SECONDS = 60
"""Time to live of a staged session after each part."""

DONE, LOST, ERASED = 1, -1, -2
"""Replies of restore.lua."""


def page_of(rows: Sequence[Message], limit: int) -> Page[Message]:
    """A page of the first ``limit`` messages; one more row means that there are more."""
    page = tuple(rows[:limit])
    return Page(page, str(page[-1].seq) if len(rows) > limit else None)


T = TypeVar("T")
Read = Callable[[bytes, bytes, Sequence[bytes]], list[T]]


class RedisArchive(RedisLists, RedisIndex):
    """See :class:`proxy.memory.archive.Archive`; a page takes as many scripts as it needs."""

    @with_timeout("read")
    async def session(self, key: SessionKey) -> Session | None:
        meta = session_keys(key)[0]
        (fields,) = await self._link.many([(meta, ("HGETALL", meta))])
        return read_session(key.session, fields)

    async def messages(
        self, key: SessionKey, states: Collection[State], after: int, limit: int
    ) -> Page[Message]:
        wanted = (int("active" in states), int("superseded" in states))
        if not any(wanted):
            return Page(())
        rows, more = await self._page_rows(key, after, limit, (*wanted, 0), read_messages)
        return Page(rows, str(rows[-1].seq) if more else None)

    async def lines(self, key: SessionKey, after: int, limit: int) -> Page[StoredMessage]:
        rows, more = await self._page_rows(key, after, limit, (*BOTH_STATES, 1), read_lines)
        return Page(rows, str(rows[-1].position.seq) if more else None)

    @limits_concurrency
    async def _page_rows(
        self, key: SessionKey, after: int, limit: int, wanted: tuple[int, int, int], read: Read[T]
    ) -> tuple[tuple[T, ...], bool]:
        """The rows of a page, and whether there may be more.

        ``wanted``: whether active messages, superseded ones, and both texts of each (0 or 1).
        """
        rows: list[T] = []
        at, size, (*states, whole) = b"%d" % after, 0, wanted
        while at and len(rows) <= limit and (size < PAGE_BYTES or len(rows) < 2):
            arguments = (at, limit + 1 - len(rows), *states, SCANNED_AT_ONCE, whole)
            at, *found = await self._read_script(
                self._scripts.messages, session_keys(key), arguments
            )
            rows += read(*found)
            size += sum([len(text) for text in found[-1] if text])
        return tuple(rows[:limit]), bool(at) or len(rows) > limit

    async def message(self, key: SessionKey, message: str) -> StoredMessage | None:
        place = parse_message_id(message)
        value = await self._read_exchange(key, place.exchange) if place else None
        seq = read_stored(value).span.seq(place.number) if place and value else None
        if seq is None:
            return None
        arguments = (seq - 1, 1, *BOTH_STATES, 1, 1)
        _, *found = await self._read_script(self._scripts.messages, session_keys(key), arguments)
        # Between the two reads the session may have been replaced.
        return next((line for line in read_lines(*found) if line.card.id == message), None)

    @with_timeout("read")
    async def exchange(
        self, key: SessionKey, exchange: str
    ) -> tuple[Exchange, Sequence[str]] | None:
        _, cards, _, _, exchanges, *_ = session_keys(key)
        fields = (f"x{exchange}", f"u{exchange}")
        ((value, usage),) = raise_errors(
            await self._link.run(exchanges, ("HMGET", exchanges, *fields))
        )
        if value is None:
            return None
        span = read_stored(value).span
        places = [(cards, ("HEXISTS", cards, field_of(span.first + n))) for n in range(span.size)]
        known = await self._link.many(places)
        ids = tuple(message_id(exchange, n) for n, exists in enumerate(known) if exists)
        return read_exchange(value, usage), ids

    async def exchanges(
        self, key: SessionKey, before: int | None, limit: int
    ) -> Page[PlacedExchange]:
        rows: list[PlacedExchange] = []
        at = b"" if before is None else b"%d" % before
        more = True
        while more and len(rows) <= limit:
            arguments = (at, limit + 1 - len(rows), SCANNED_AT_ONCE)
            at, *found = await self._read_script(
                self._scripts.exchanges, session_keys(key), arguments
            )
            rows += read_placed_exchanges(found)
            more = bool(at)
        page = tuple(rows[:limit])
        return Page(page, str(page[-1].first) if len(rows) > limit else None)

    @with_timeout("read")
    async def _read_exchange(self, key: SessionKey, exchange: str) -> bytes | None:
        """The stored value of an exchange, see ``read_stored``."""
        exchanges = session_keys(key)[4]
        (value,) = await self._link.many([(exchanges, ("HGET", exchanges, f"x{exchange}"))])
        return value if value is None else bytes(value)

    # Changing

    async def revise(self, key: SessionKey, revision: Revision) -> bool:
        """If the reply is lost and the script is sent again, its name tells that it was done.

        A caller that repeats the revision after a StoreError gets False if the first was done,
        since ``replaced_wire`` does not hold any more.
        """
        reply: Sequence[Any] = ()
        for step in revision_steps(revision):
            arguments = revise_arguments(step, secrets.token_hex(8))
            try:
                reply = await self._write_script(self._scripts.revise, session_keys(key), arguments)
            finally:
                self._clear_caches()
            if not reply:
                return False
        _, owner, *activity = reply
        # The lists have a copy of its expiry, and its index must live as long.
        if revision.details is not None:
            listing = self._add_to_lists(key, owner.decode(), activity)
            await bounded(listing, self._commit_timeout)
            await self._set_life(owner_of(key, owner.decode()), int(activity[1]))
        return True

    async def restore(
        self, key: SessionKey, archived: SessionArchive, since: float | None = None
    ) -> bool:
        """Staged in parts under other names, then published at once.

        In a cluster, where its lists are on other servers, it expires within seconds until it is in
        them: if this is interrupted, no erasure would find it.
        """
        name = secrets.token_hex(8)
        staged = session_keys(key, prefix=f"brought-{name}-".encode())
        fill, seconds = self._scripts.restore_fill, STAGED_SECONDS
        for values in batches(restored_values(archived, name)):
            await self._write_unreplicated(fill, staged, (seconds, *values))
        status, owner, *activity = await self._publish(key, staged, archived.session, name, since)
        if status == LOST:
            raise StoreError("Redis: putting a session back took too long")
        if self._one_slot or status == ERASED:
            return bool(status == DONE)
        return await self._list_or_remove(key, owner.decode(), activity, since, new=status == DONE)

    async def _publish(
        self,
        key: SessionKey,
        staged: Sequence[bytes],
        session: Session,
        name: str,
        since: float | None,
    ) -> Sequence[Any]:
        """Make the staged session the session; the reply of restore.lua."""
        marks, lists = [mark_key(session_subject(key))], list[bytes]()
        if self._one_slot:
            marks += [mark_key(subject) for subject in user_subjects(key.tenant, session.user)]
            lists += list_keys(key.tenant)
            lists += list_keys(key.tenant, session.user) if session.user else []
        ttl = session.details.ttl if self._one_slot else STAGED_SECONDS
        arguments = (ttl, name, format_time(since), len(marks), key.session)
        keys = [*session_keys(key), *staged, *marks, *lists]
        reply: Sequence[Any] = await self._write_script(self._scripts.restore, keys, arguments)
        return reply

    @with_timeout("write")
    async def _list_or_remove(
        self,
        key: SessionKey,
        owner: str,
        activity: Sequence[bytes],
        since: float | None,
        *,
        new: bool,
    ) -> bool:
        """List a published session and set its time to live, or remove it if its owner was erased;
        whether it was restored.

        Also for one that existed: an earlier attempt may have been interrupted here.
        """
        if await self._add_to_lists(key, owner, activity, since, new=new):
            await self._scripts.write(self._scripts.restore_keep, session_keys(key), ())
            return new
        if new:
            await self._remove(key)
        return False
