"""What a request reads from Redis, a long log in pieces.

A server does one thing at a time: a script that reads a log of many thousands of messages would
hold up everybody.  What is appended while the pieces are read is left out; where anything else has
changed, all is read again.  What a server has evicted is left out, and counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from proxy.memory.archive import Message
from proxy.memory.model import Ask, Entry, SessionKey, Snapshot, message_id
from proxy.memory.store import StoreError, StoreTimeout
from proxy.recall.index import Owner
from proxy.stores.common import codec
from proxy.stores.common.history import locate_all
from proxy.stores.common.known_logs import CachedLog, Newest
from proxy.stores.common.known_passages import CachedPassages
from proxy.stores.redis import told
from proxy.stores.redis.base import RedisBase, field_of, session_keys, with_timeout
from proxy.stores.redis.codec import (
    load_arguments,
    passage_arguments,
    read_passages,
    read_position,
    read_span,
    read_stored,
    read_version,
)
from proxy.stores.redis.index import index_keys
from proxy.stores.redis.scripts import Scripts

T = TypeVar("T")

PIECE = 500
"""As in prelude.lua."""

BODIES = 4000
"""Bodies that are asked for at once."""

_WIRE = b"w"
"""Before the field of a message: what came of it, where that differs."""

LARGE = b"large"
"""What load.lua says of a log whose end is too long to be read at once."""

LONG = 4 * PIECE
"""Entries from which on a log is put together in a thread."""

TRIES = 5
"""How often a log is read again that is changed meanwhile."""


class LoadReply(msgspec.Struct, frozen=True, gc=False):
    """The reply to load.lua.  ``texts`` are the bodies by seq, None where one is gone.

    ``shown`` and ``size`` count the messages that should be there, in the window and in the log;
    ``end`` is behind the last of them, and ``stamp`` changes with anything but what is appended.
    The log begins with the turn ``begin``.  ``known``: what was known is not among the entries.
    ``look`` is a look at the session's own index, empty where it has none.  ``unread_choices``:
    it has so many inactive choices that they are still to be read.  ``recallable``: the passages
    that are known are still there.
    """

    snapshot: Snapshot
    texts: Mapping[int, bytes | None]
    shown: int
    size: int
    end: int
    stamp: bytes
    begin: int
    known: bool
    lookup: Sequence[Any]
    unread_choices: bool
    recallable: bool


class Loaded(NamedTuple):
    """A snapshot, the log to be known at the next look, a look at the session's own index, and
    whether the passages that are known are still there."""

    snapshot: Snapshot
    learned: CachedLog | None = None
    lookup: Sequence[Any] = ()
    recallable: bool = False


class Lookup(NamedTuple):
    """Messages of a session that are looked up, by seq, and what is known of it."""

    key: SessionKey
    seqs: Collection[int]
    known: CachedPassages

    def is_current(self, just: told.LoadedSession, user: str | None) -> bool:
        """Whether all of them are known, and as they were when the request was told."""
        return just.confirms(self.key, user, self.known.stamp) and not self.known.lacks(self.seqs)

    def call(self, user: str | None) -> tuple[Sequence[bytes], Sequence[Any]]:
        return session_keys(self.key), passage_arguments(user, self.seqs, self.known)


class RedisReading(RedisBase):
    """See :class:`proxy.memory.store.Memory`."""

    @with_timeout("read")
    async def load(self, key: SessionKey, ask: Ask) -> Snapshot:
        era, known = self._logs.era, None if ask.whole else self._logs.of(key)
        began, recalled = told.now(), self._passages.of(key)
        index = self._index_of(key, known)
        loaded = await load(self._scripts, key, ask, self._clock(), known, recalled, index)
        snapshot, learned, lookup, recallable = loaded
        if learned is not None:
            learned = replace(learned, is_ownerless=snapshot.owner is None)
            stamp = learned.stamp if recallable else b""
            told.remember(self._passages, key, stamp, snapshot.owner, lookup, began)
        if not ask.whole:
            self._logs.put(key, learned, era)
        return snapshot

    def _index_of(self, key: SessionKey, known: CachedLog | None) -> Sequence[bytes]:
        """Meta and marks of a session's own index, where something was found in it: a cluster
        whose slots are on their way refuses scripts that have a key which is not there."""
        if known is None or not known.is_ownerless or not self._passages.of(key).messages:
            return ()
        meta, _, marks, *_ = index_keys(Owner(key.tenant, session=key.session))
        return meta, marks

    @with_timeout("read")
    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        return await self._texts(key, ids)

    @with_timeout("read")
    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        return await self._texts(key, ids, _WIRE)

    async def _texts(
        self, key: SessionKey, ids: Collection[str], before: bytes = b""
    ) -> dict[str, bytes]:
        """What the hash has under the fields of these messages with ``before`` before them."""
        places = locate_all(ids)
        if not places:
            return {}
        _, _, log, _, exchanges, *_ = session_keys(key)
        named = list(dict.fromkeys(place.exchange for place in places))
        values = await self._run_command(
            exchanges, "HMGET", exchanges, *(f"x{name}" for name in named)
        )
        pairs = zip(named, values, strict=True)
        spans = {name: read_stored(value).span for name, value in pairs if value}
        seqs: dict[str, int] = {}
        for place in places:
            span = spans.get(place.exchange)
            if span and (seq := span.seq(place.number)) is not None:
                seqs[message_id(*place)] = seq
        found: dict[str, bytes] = {}
        for some in pieces(list(seqs), BODIES):
            fields = (before + field_of(seqs[id]) for id in some)
            texts = await self._run_command(log, "HMGET", log, *fields)
            found |= {id: text for id, text in zip(some, texts, strict=True) if text is not None}
        return found

    @with_timeout("read")
    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        era, just = self._passages.era, told.take(self._passages)
        keys = {SessionKey(tenant, name): seqs for name, seqs in places.items()}
        lookups = [Lookup(key, seqs, self._passages.of(key)) for key, seqs in keys.items()]
        asked = [each for each in lookups if not (just and each.is_current(just, user))]
        calls = [each.call(user) for each in asked]
        replies = await self._scripts.many(self._scripts.passages, calls)
        read = {
            each.key: read_passages(each.known, reply)
            for each, reply in zip(asked, replies, strict=True)
        }
        found: dict[tuple[str, int], Message] = {}
        for key, seqs, known in lookups:
            passages = read.get(key, known)
            self._passages.put(key, passages, era)
            found |= passages.of(key.session, seqs)
        return found


async def load(
    scripts: Scripts,
    key: SessionKey,
    ask: Ask,
    now: float,
    known: CachedLog | None,
    recalled: CachedPassages,
    index: Sequence[bytes],
) -> Loaded:
    """One look, at the ``index`` too; a whole log takes a round trip for each ``PIECE``."""
    keys = session_keys(key)
    for _ in range(TRIES):
        arguments = load_arguments(ask, now, key.session, known, recalled)
        reply = await scripts.read(scripts.load, [*keys, *index], arguments)
        if not reply or len(reply) == 1:
            return Loaded(_without_log(reply))
        first = read_first(reply, ask)
        if known is not None and first.known:
            if learned := extend_known(known, first):
                snapshot = replace(first.snapshot, log=learned.log, bodies=learned.bodies)
                return Loaded(snapshot, learned, first.lookup, first.recallable)
            known = None  # a late answer stands in its turn, before the end
            continue
        if loaded := await _read_rest(scripts, keys, first):
            return loaded
    raise StoreError("a session was changed again and again while it was read")


def _without_log(reply: Sequence[Any]) -> Snapshot:
    """From a reply without a log: there is no session, or its log is lost.  Raises StoreTimeout."""
    if reply == [LARGE]:
        raise StoreTimeout("the end of the session is too long to be read at once")
    return Snapshot(lost=int(reply[0])) if reply else Snapshot()


async def _read_rest(scripts: Scripts, keys: Sequence[bytes], first: LoadReply) -> Loaded | None:
    """All that the first reply has left for further ones; None if the log was changed."""
    if first.unread_choices:
        choices = await _read_choices(scripts, keys, first)
        if choices is None:
            return None
        snapshot = replace(first.snapshot, alternates=codec.alternates(choices))
        first = replace(first, snapshot=snapshot)
    more = await _read_entries(scripts, keys, first) if first.snapshot.whole else ()
    if more is None:
        return None
    long = len(more) > LONG
    return await asyncio.to_thread(_whole, first, more) if long else _whole(first, more)


def _whole(first: LoadReply, more: Sequence[Entry]) -> Loaded:
    snapshot = snapshot_of(first, more)
    log = snapshot.log
    if snapshot.lost or snapshot.whole or not log or log[0].position.turn < first.begin:
        return Loaded(snapshot)
    learned = CachedLog(
        stamp=first.stamp,
        end=first.end,
        messages=snapshot.messages,
        begin=first.begin,
        log=log,
        bodies=snapshot.bodies,
        newest=newest_of(log),
    )
    return Loaded(snapshot, learned, first.lookup, first.recallable)


def newest_of(entries: Sequence[Entry]) -> Newest:
    """The message with the highest seq, which need not be the last: late answers join their
    turn."""
    newest = max(entries, key=lambda entry: entry.position.seq)
    return Newest(newest.position.seq, newest.card.id)


def extend_known(known: CachedLog, first: LoadReply) -> CachedLog | None:
    """What is known together with what was appended; None where that is not all there is."""
    before, added = known.since(first.begin), first.snapshot.log
    if len(before.entries) + len(added) != first.shown or len(added) != len(first.texts):
        return None
    entries = (*before.entries[-1:], *added)
    if not all(a.position < b.position for a, b in pairwise(entries)):
        return None
    texts = first.texts
    bodies = {e.card.id: text for e in added if (text := texts.get(e.position.seq))}
    if len(bodies) != len(added):
        return None
    return CachedLog(
        stamp=known.stamp,
        end=first.end,
        messages=first.snapshot.messages,
        begin=first.begin,
        log=before.entries + added,
        bodies={**before.bodies, **bodies} if bodies else before.bodies,
        newest=newest_of(added) if added else known.newest,
    )


async def _read_entries(
    scripts: Scripts, keys: Sequence[bytes], first: LoadReply
) -> list[Entry] | None:
    """The entries behind the first piece; None if the log was changed."""
    found: list[Entry] = []
    place, size = PIECE, first.size
    while place < size:
        # A late answer joins its turn: what stands behind it is one place farther then.
        joined, size, stamp = await scripts.read(scripts.load_more, keys, (place,))
        if stamp != first.stamp:
            return None
        found += codec.decode_log(joined)
        place += PIECE
    return found


async def _read_choices(
    scripts: Scripts, keys: Sequence[bytes], first: LoadReply
) -> list[Entry] | None:
    """The inactive choices of a log that has many; None if the log was changed."""
    spans: set[bytes] = set()  # SSCAN may tell of an exchange twice
    cursor = b"0"
    while True:
        cursor, some, stamp = await scripts.read(scripts.load_choices, keys, (cursor,))
        if stamp != first.stamp:
            return None
        spans.update(some)
        if cursor == b"0":
            break
    found: list[Entry] = []
    seqs = [begin + n for begin, size in map(read_span, spans) for n in range(size)]
    for piece in pieces(seqs, PIECE):
        _, joined, stamp = await scripts.read(scripts.load_choices, keys, ("", *piece))
        if stamp != first.stamp:
            return None
        found += codec.decode_log(joined)
    return found


def pieces(all_of_them: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (all_of_them[at : at + size] for at in range(0, len(all_of_them), size))


def read_first(reply: Sequence[Any], ask: Ask) -> LoadReply:
    owner, system, system_tokens, messages, tokens, start, last, last_usage = reply[:8]
    attempt, attempt_usage, joined, shown, seqs, bodies, choices = reply[8:15]
    summary, changes, stalled, size, stamp, end, begin, known, lookup = reply[15:24]
    unread_choices, recallable, created = reply[24:]
    numbers = [int(number) for number in seqs.split(b",")] if seqs else []
    snapshot = Snapshot(
        exists=True,
        owner=owner.decode() if owner else None,
        system=codec.text(system),
        system_tokens=int(system_tokens or 0),
        start=read_position(start) if start else None,
        log=codec.decode_log(joined),
        whole=ask.whole,
        alternates=codec.alternates(codec.decode_log(choices)) if choices else {},
        last=codec.decode_exchange(last, last_usage) if last else None,
        attempt=codec.decode_exchange(attempt, attempt_usage) if attempt else None,
        messages=int(messages),
        tokens=int(tokens),
        summary=read_version(summary) if summary else None,
        changes=int(changes or 0),
        stalled=bool(stalled),
        began=float(created),
    )
    texts = dict(zip(numbers, codec.texts(bodies), strict=True))
    return LoadReply(
        snapshot=snapshot,
        texts=texts,
        shown=int(shown),
        size=int(size),
        end=int(end),
        stamp=stamp,
        begin=int(begin),
        known=bool(known),
        lookup=lookup,
        unread_choices=bool(unread_choices),
        recallable=bool(recallable),
    )


def _is_complete(first: LoadReply) -> bool:
    """Is all there that should be, and nothing else?"""
    texts = first.texts
    if not (len(first.snapshot.log) == len(texts) == first.shown and first.size):
        return False
    return all(texts.values()) and max(texts, default=0) < first.end


def snapshot_of(first: LoadReply, more: Sequence[Entry]) -> Snapshot:
    """The snapshot with all entries that are there: once, though late answers move their places."""
    snapshot, texts = first.snapshot, first.texts
    if not (more or snapshot.whole) and _is_complete(first):
        bodies = {e.card.id: texts[e.position.seq] or b"" for e in snapshot.log}
        return replace(snapshot, bodies=bodies)
    entries = {entry.position: entry for entry in (*snapshot.log, *more)}
    log = tuple(
        entry
        for position, entry in (sorted(entries.items()) if more else entries.items())
        if position.seq < first.end and texts.get(position.seq, b"") is not None
    )
    there = (entry for entry in log if entry.position.seq in texts)
    bodies = {entry.card.id: text for entry in there if (text := texts[entry.position.seq])}
    expected = first.size if snapshot.whole else first.shown
    emptied = snapshot.messages if not first.size else 0
    lost = max(0, expected - len(log)) + emptied
    return replace(snapshot, log=log, bodies=bodies, lost=lost)
