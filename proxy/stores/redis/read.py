"""What a request reads from Redis; a long log is read in pieces.

A server runs one script at a time, so one that reads many thousands of messages would delay all
others.  Messages that are appended while the pieces are read are left out; if anything else has
changed, everything is read again.  Messages that the server has evicted are counted as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from proxy.memory.archive import Message
from proxy.memory.model import Entry, LoadOptions, SessionKey, Snapshot, message_id
from proxy.memory.store import StoreError, StoreTimeout
from proxy.recall.index import Owner
from proxy.stores.common import codec
from proxy.stores.common.history import parse_message_ids
from proxy.stores.common.log_cache import CachedLog, Newest
from proxy.stores.common.passage_cache import CachedPassages
from proxy.stores.redis import request_cache
from proxy.stores.redis.base import RedisBase, field_of, session_keys, with_timeout
from proxy.stores.redis.codec import (
    load_arguments,
    passage_arguments,
    read_passages,
    read_position,
    read_span,
    read_stored,
    read_texts,
    read_version,
)
from proxy.stores.redis.index import index_keys
from proxy.stores.redis.scripts import Scripts

T = TypeVar("T")

PIECE = 500
"""Entries that one script returns; as in prelude.lua."""

BODIES_AT_ONCE = 4000
"""Bodies that one command reads."""

_WIRE_PREFIX = b"w"
"""Prefix of the hash field with a message's JSON as it came, if that differs from its body."""

TOO_LARGE = b"large"
"""The reply of load.lua for a log whose end is too long to be read at once."""

LONG = b"long"
"""The reply of load.lua for a window of over ``PIECE`` messages, unless it may be so long.

It is read in pieces, since a script that returns thousands would delay all others for a tenth of a
second, and one of a tenant at a time.
"""

LONG_LOG = 4 * PIECE
"""Entries; the snapshot of a longer log is made in a thread."""

TRIES = 5
"""Attempts to read a log that others change meanwhile."""


class LoadReply(msgspec.Struct, frozen=True, gc=False):
    """The reply to load.lua.  ``texts`` are the bodies by seq, None if one is lost.

    ``window_size`` and ``size`` are how many messages the window and the log should have; ``end``
    is the first free seq, and ``stamp`` changes with everything but appends.  The log begins with
    the turn ``begin``.  ``known``: the cached log is current, and the entries are only those after
    it.  ``lookup`` is the head of the session's own index, empty if it has none.
    ``unread_choices``: it has so many inactive choices that they must be read separately.
    ``passages_current``: so are the cached passages.  ``rest``: the place in the log of what is
    still to be read of a long window, 0 if nothing is.
    """

    snapshot: Snapshot
    texts: Mapping[int, bytes | None]
    window_size: int
    size: int
    end: int
    stamp: bytes
    begin: int
    known: bool
    lookup: Sequence[Any]
    unread_choices: bool
    passages_current: bool
    rest: int


class Loaded(NamedTuple):
    """A snapshot, the log to cache, the head of the session's own index, and whether the cached
    passages are current."""

    snapshot: Snapshot
    cached: CachedLog | None = None
    lookup: Sequence[Any] = ()
    passages_current: bool = False


class PassageLookup(NamedTuple):
    """Messages of a session to read, by seq, and its cached passages."""

    key: SessionKey
    seqs: Collection[int]
    known: CachedPassages

    def is_current(self, loaded: request_cache.LoadedSession, user: str | None) -> bool:
        """Whether all of them are cached, with the stamp of this request's load."""
        return loaded.confirms(self.key, user, self.known.stamp) and not self.known.missing(
            self.seqs
        )

    def call(self, user: str | None) -> tuple[Sequence[bytes], Sequence[Any]]:
        return session_keys(self.key), passage_arguments(user, self.seqs, self.known)


class RedisReading(RedisBase):
    """See :class:`proxy.memory.store.Memory`."""

    @with_timeout("read")
    async def load(self, key: SessionKey, options: LoadOptions) -> Snapshot:
        era, known = self._logs.era, None if options.whole else self._logs.get(key)
        began = request_cache.now()
        snapshot, cached, lookup, passages_current = await self._load(key, options, known)
        if cached is not None:
            cached = replace(cached, is_ownerless=snapshot.owner is None)
            stamp = cached.stamp if passages_current else b""
            request_cache.remember(self._passages, key, stamp, snapshot.owner, lookup, began)
        if not options.whole:
            self._logs.put(key, cached, era)
        return snapshot

    async def _load(self, key: SessionKey, options: LoadOptions, known: CachedLog | None) -> Loaded:
        """Load a session, and the head of its own index if passages were found in that.

        One round trip; a long window or a whole log takes one more for each ``PIECE``.
        """
        loaded = await self._load_unless_long(key, options, known)
        if loaded is not None:
            return loaded
        async with self._long_loads.of(key.tenant):
            # The one before may have read the same.
            known = None if options.whole else self._logs.get(key)
            loaded = await self._load_unless_long(key, options, known, may_be_long=True)
        assert loaded is not None  # it may be long
        return loaded

    async def _load_unless_long(
        self,
        key: SessionKey,
        options: LoadOptions,
        known: CachedLog | None,
        *,
        may_be_long: bool = False,
    ) -> Loaded | None:
        """None for a long window, unless it may be one."""
        now, cached_passages = self._clock(), self._passages.get(key)
        keys, index = session_keys(key), self._index_of(key, known)
        for _ in range(TRIES):
            arguments = load_arguments(options, now, key.session, known, cached_passages)
            arguments.append(int(may_be_long))
            reply = await self._scripts.read(self._scripts.load, [*keys, *index], arguments)
            if reply == [LONG]:
                return None
            if not reply or len(reply) == 1:
                return Loaded(_snapshot_without_log(reply))
            first = parse_load(reply, options)
            if known is not None and first.known:
                if cached := extend_cached(known, first):
                    snapshot = replace(first.snapshot, log=cached.log, bodies=cached.bodies)
                    return Loaded(snapshot, cached, first.lookup, first.passages_current)
                known = None  # a late answer was inserted into its turn, before the end
                continue
            if loaded := await _read_rest(self._scripts, keys, first):
                return loaded
        raise StoreError("a session was changed again and again while it was read")

    def _index_of(self, key: SessionKey, known: CachedLog | None) -> Sequence[bytes]:
        """The keys of meta and marks of a session's own index; none unless passages were found in
        it: while a cluster moves a slot it refuses scripts with a key that does not exist."""
        if known is None or not known.is_ownerless or not self._passages.get(key).messages:
            return ()
        meta, _, marks, *_ = index_keys(Owner(key.tenant, session=key.session))
        return meta, marks

    @with_timeout("read")
    async def bodies(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        return await self._read_fields(key, ids)

    @with_timeout("read")
    async def wires(self, key: SessionKey, ids: Collection[str]) -> dict[str, bytes]:
        return await self._read_fields(key, ids, _WIRE_PREFIX)

    async def _read_fields(
        self, key: SessionKey, ids: Collection[str], prefix: bytes = b""
    ) -> dict[str, bytes]:
        """By message id the hash fields of these messages, whose names begin with ``prefix``."""
        places = parse_message_ids(ids)
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
        for some in chunks(list(seqs), BODIES_AT_ONCE):
            fields = (prefix + field_of(seqs[id]) for id in some)
            texts = await self._run_command(log, "HMGET", log, *fields)
            found |= {id: text for id, text in zip(some, texts, strict=True) if text is not None}
        return found

    @with_timeout("read")
    async def passages(
        self, tenant: str, user: str | None, places: Mapping[str, Collection[int]]
    ) -> dict[tuple[str, int], Message]:
        era, loaded = self._passages.era, request_cache.take(self._passages)
        keys = {SessionKey(tenant, name): seqs for name, seqs in places.items()}
        lookups = [PassageLookup(key, seqs, self._passages.get(key)) for key, seqs in keys.items()]
        unconfirmed = [each for each in lookups if not (loaded and each.is_current(loaded, user))]
        calls = [each.call(user) for each in unconfirmed]
        replies = await self._scripts.many(self._scripts.passages, calls)
        read = {
            each.key: read_passages(each.known, reply)
            for each, reply in zip(unconfirmed, replies, strict=True)
        }
        found: dict[tuple[str, int], Message] = {}
        for key, seqs, known in lookups:
            passages = read.get(key, known)
            self._passages.put(key, passages, era)
            found |= passages.select(key.session, seqs)
        return found


def _snapshot_without_log(reply: Sequence[Any]) -> Snapshot:
    """The snapshot of a reply without a log: no session, or a lost log.  Raises StoreTimeout."""
    if reply == [TOO_LARGE]:
        raise StoreTimeout("the end of the session is too long to be read at once")
    return Snapshot(missing_messages=int(reply[0])) if reply else Snapshot()


async def _read_rest(scripts: Scripts, keys: Sequence[bytes], first: LoadReply) -> Loaded | None:
    """Read what the first reply does not contain; None if the log was changed meanwhile."""
    if first.unread_choices:
        choices = await _read_choices(scripts, keys, first)
        if choices is None:
            return None
        snapshot = replace(first.snapshot, alternates=codec.alternates(choices))
        first = replace(first, snapshot=snapshot)
    if first.rest:
        window = await _read_pieces(scripts, keys, first, first.rest, bodies=True)
        if window is None:
            return None
        snapshot = replace(first.snapshot, log=(*first.snapshot.log, *window.entries))
        first = replace(first, snapshot=snapshot, texts={**first.texts, **window.texts})
    more: Sequence[Entry] = ()
    if first.snapshot.whole:
        others = await _read_pieces(scripts, keys, first, PIECE, bodies=False)
        if others is None:
            return None
        more = others.entries
    long = len(more) > LONG_LOG
    return await asyncio.to_thread(_assemble, first, more) if long else _assemble(first, more)


def _assemble(first: LoadReply, more: Sequence[Entry]) -> Loaded:
    snapshot = snapshot_of(first, more)
    log = snapshot.log
    if snapshot.missing_messages or snapshot.whole or not log or log[0].position.turn < first.begin:
        return Loaded(snapshot)
    cached = CachedLog(
        stamp=first.stamp,
        end=first.end,
        messages=snapshot.messages,
        begin=first.begin,
        log=log,
        bodies=snapshot.bodies,
        newest=newest_of(log),
    )
    return Loaded(snapshot, cached, first.lookup, first.passages_current)


def newest_of(entries: Sequence[Entry]) -> Newest:
    """The message with the highest seq, which need not be the last one: late answers are inserted
    into their turn."""
    newest = max(entries, key=lambda entry: entry.position.seq)
    return Newest(newest.position.seq, newest.card.id)


def extend_cached(known: CachedLog, first: LoadReply) -> CachedLog | None:
    """The cached log with the appended entries; None if that is not the complete log."""
    before, added = known.part_from(first.begin), first.snapshot.log
    if len(before.entries) + len(added) != first.window_size or len(added) != len(first.texts):
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


class _Pieces(NamedTuple):
    entries: list[Entry]
    texts: dict[int, bytes | None]


async def _read_pieces(
    scripts: Scripts, keys: Sequence[bytes], first: LoadReply, place: int, *, bodies: bool
) -> _Pieces | None:
    """The entries of the log from ``place`` on, with ``bodies`` if wanted; None if the log was
    changed."""
    found, size = _Pieces([], {}), first.size
    while place < size:
        # A late answer is inserted into its turn, and moves the entries after it by one.
        reply = await scripts.read(scripts.load_more, keys, (place, int(bodies)))
        joined, size, stamp, seqs, texts = reply
        if stamp != first.stamp:
            return None
        found.entries.extend(codec.decode_log(joined))
        found.texts.update(read_texts(seqs, texts))
        place += PIECE
    return found


async def _read_choices(
    scripts: Scripts, keys: Sequence[bytes], first: LoadReply
) -> list[Entry] | None:
    """The inactive choices of a log that has many; None if the log was changed."""
    spans: set[bytes] = set()  # SSCAN may return an exchange twice
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
    for piece in chunks(seqs, PIECE):
        _, joined, stamp = await scripts.read(scripts.load_choices, keys, ("", *piece))
        if stamp != first.stamp:
            return None
        found += codec.decode_log(joined)
    return found


def chunks(all_of_them: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (all_of_them[at : at + size] for at in range(0, len(all_of_them), size))


def parse_load(reply: Sequence[Any], options: LoadOptions) -> LoadReply:
    owner, system, system_tokens, messages, tokens, start, last, last_usage = reply[:8]
    attempt, attempt_usage, joined, window_size, seqs, bodies, choices = reply[8:15]
    summary, changes, stalled, size, stamp, end, begin, known, lookup = reply[15:24]
    unread_choices, passages_current, created, rest = reply[24:]
    snapshot = Snapshot(
        exists=True,
        owner=owner.decode() if owner else None,
        system=codec.text(system),
        system_tokens=int(system_tokens or 0),
        start=read_position(start) if start else None,
        log=codec.decode_log(joined),
        whole=options.whole,
        alternates=codec.alternates(codec.decode_log(choices)) if choices else {},
        last=codec.decode_exchange(last, last_usage) if last else None,
        attempt=codec.decode_exchange(attempt, attempt_usage) if attempt else None,
        messages=int(messages),
        tokens=int(tokens),
        summary=read_version(summary) if summary else None,
        changes=int(changes or 0),
        stalled=bool(stalled),
        created_at=float(created),
    )
    return LoadReply(
        snapshot=snapshot,
        texts=read_texts(seqs, bodies),
        window_size=int(window_size),
        size=int(size),
        end=int(end),
        stamp=stamp,
        begin=int(begin),
        known=bool(known),
        lookup=lookup,
        unread_choices=bool(unread_choices),
        passages_current=bool(passages_current),
        rest=int(rest),
    )


def _is_complete(first: LoadReply) -> bool:
    """Whether no entry and no body is missing, and none is too new."""
    texts = first.texts
    if not (len(first.snapshot.log) == len(texts) == first.window_size and first.size):
        return False
    return all(texts.values()) and max(texts, default=0) < first.end


def snapshot_of(first: LoadReply, more: Sequence[Entry]) -> Snapshot:
    """The snapshot with all entries, each once: late answers may have shifted them between two
    pieces."""
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
    with_text = (entry for entry in log if entry.position.seq in texts)
    bodies = {entry.card.id: text for entry in with_text if (text := texts[entry.position.seq])}
    expected = first.size if snapshot.whole else first.window_size
    emptied = snapshot.messages if not first.size else 0
    lost = max(0, expected - len(log)) + emptied
    return replace(snapshot, log=log, bodies=bodies, missing_messages=lost)
