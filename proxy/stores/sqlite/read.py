"""What a request reads from the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from sqlite3 import Connection
from typing import Any, NamedTuple

from proxy.memory.archive import Message
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Entry,
    LoadOptions,
    Position,
    SessionKey,
    Snapshot,
    message_id,
)
from proxy.stores.common import codec
from proxy.stores.common.history import SeqSpan, first_turn, is_within_bounds, parse_message_ids
from proxy.stores.common.log_cache import CachedLog, LogPart
from proxy.stores.sqlite.rows import LIVE, SUMMARY, text_in
from proxy.stores.sqlite.worker import consistent_read

PIECE = 500
"""Entries that are decoded at once: some milliseconds for which the GIL is held."""

# Fetching a row releases the GIL and waits for it again, behind everything that the loop has to do:
# so all rows are joined into one.
JOINED = (
    "total(typeof(entry) <> 'blob' OR typeof(body) <> 'blob')",
    "CAST(group_concat(entry, ',') AS BLOB)",
    "CAST(group_concat(body, '') AS BLOB)",
    "group_concat(length(body))",
)
"""Columns that join messages: how many have values of a wrong type, their entries, their bodies,
and the length of each body."""

_TEXT = text_in("body")

# One statement for everything except messages; each join finds at most one row.
_SESSION_ROW = f"""
SELECT s.id, s.owner, s.system, s.system_tokens, s.messages, s.tokens, w.turn, w.seq,
       x.first, x.size, {text_in("x.record")}, x.usage, {text_in("a.record")}, a.usage, s.changes,
       s.stalled, s.created_at, s.next, {SUMMARY}, s.expires_at{{}}
FROM sessions s
LEFT JOIN windows w ON w.session = s.id AND w.profile = :profile
LEFT JOIN exchanges x ON x.session = s.id AND x.id = s.last
LEFT JOIN keys k ON k.session = s.id AND k.key = :key
LEFT JOIN exchanges a ON a.session = s.id AND a.id = k.exchange AND a.created_at > :oldest
WHERE s.tenant = :tenant AND s.session = :session AND {LIVE}
"""

_HEAD = _SESSION_ROW.format("")

# What was appended to the cached log, unless it is too much.
_ADDED = f"""
CASE WHEN s.next - :known <= {PIECE} THEN (SELECT {{}} FROM (
    SELECT entry, {_TEXT} AS body FROM messages
    WHERE session = s.id AND seq >= :known AND active = 1 ORDER BY seq
)) END
"""

_HEAD_SINCE = _SESSION_ROW.format("".join(f", {_ADDED.format(joined)}" for joined in JOINED))

# Of one message; no row where it has none.
_ONE_TEXT = f"""
SELECT {{text}} FROM sessions s
JOIN exchanges x ON x.session = s.id AND x.id = :exchange
JOIN messages m ON m.session = x.session AND m.seq = x.first + :number AND :number < x.size
WHERE s.tenant = :tenant AND s.session = :session AND {LIVE} AND {{column}} IS NOT NULL
"""
_BODY, _WIRE = (_ONE_TEXT.format(text=text_in(at), column=at) for at in ("m.body", "m.wire"))

# Places are seqs by session.  CROSS JOIN makes them the outer loops, with one lookup for each.
_PASSAGES = f"""
SELECT m.entry, {text_in("m.body")} AS body, json_array(s.session, s.expires_at IS NULL) AS home
FROM json_each(:places) AS place
CROSS JOIN sessions s ON s.tenant = :tenant AND s.session = place.key AND {LIVE}
    AND (:user IS NULL OR s.owner = :user)
CROSS JOIN json_each(place.value) AS seq
CROSS JOIN messages m ON m.session = s.id AND m.seq = seq.value AND m.active = 1
"""

_NEWEST = """
SELECT turn FROM messages WHERE session = ? AND active = 1 ORDER BY turn DESC LIMIT 1
"""

_BACKWARDS = """
SELECT turn, tokens FROM messages WHERE session = ? AND active = 1 ORDER BY turn DESC, seq DESC
"""

_LOG_FROM = f"""
SELECT entry, {_TEXT} AS body FROM messages WHERE session = ? AND active = 1 AND turn >= ?
ORDER BY turn, seq
"""

_LOG_BEFORE = f"""
SELECT entry, {_TEXT} AS body FROM messages WHERE session = :session AND active = 1
    AND turn IN (
        SELECT turn FROM messages
        WHERE session = :session AND seq >= :first AND seq < :end AND active = 1 AND turn < :begin
    )
ORDER BY turn, seq
"""

_JOINED = f"SELECT {', '.join(JOINED)}, {{}} FROM ({{}})"
_HOMES = "json_group_array(json(home))"

_CARDS = "SELECT entry FROM messages WHERE session = ? AND active = 1 ORDER BY turn, seq"

_IDLE_CHOICES = """
SELECT m.entry FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq >= x.first AND m.seq < x.first + x.size
WHERE x.session = ? AND x.choices = 1 AND m.active = 0
ORDER BY x.first, m.seq
"""

NOTHING = SeqSpan(0, 0)


class SessionRow(NamedTuple):
    """What a load reads of a session in one statement; from ``invalid`` on what was appended to
    the cached log, as ``JOINED``."""

    session: int
    owner: str | None
    system: bytes | None
    system_tokens: int
    messages: int
    tokens: int
    turn: int | None
    seq: int
    first: int
    size: int
    last: bytes | None
    last_usage: bytes | None
    attempt: bytes | None
    attempt_usage: bytes | None
    changes: int
    stalled: int
    created_at: float
    end: int
    summary: bytes | None
    expires_at: float | None
    invalid: float | None = None
    added: bytes | None = None
    texts: bytes | None = None
    lengths: str | None = None

    @property
    def start(self) -> Position | None:
        return None if self.turn is None else Position(self.turn, self.seq)


class LogQuery(NamedTuple):
    """What a load has to find: the session's row and what was asked for.

    ``last`` is the span of the newest exchange.
    """

    stamp: bytes
    row: SessionRow
    last: SeqSpan
    options: LoadOptions

    @property
    def is_unbounded(self) -> bool:
        return self.row.start is None and is_within_bounds(
            self.row.messages, self.row.tokens, self.options
        )

    def cached_log(self, begin: int, log: LogPart) -> CachedLog:
        row = self.row
        return CachedLog(self.stamp, row.end, row.messages, begin, *log, row.expires_at is None)

    def is_last(self, entry: Entry) -> bool:
        """Whether the entry belongs to the newest exchange."""
        return self.last.first <= entry.position.seq < self.last.first + self.last.size

    def first_turn_in(self, log: Sequence[Entry]) -> int:
        """The turn with which the bounded log begins; if ``log``, the end of the log, is too short
        to tell, a lower one."""
        if self.is_unbounded or not log:
            return 0

        def backwards() -> Iterable[tuple[int, int]]:
            return ((entry.position.turn, entry.card.tokens) for entry in reversed(log))

        return self.first_turn(backwards, log[-1].position.turn)

    def first_turn(self, backwards: Callable[[], Iterable[tuple[int, int]]], newest: int) -> int:
        summary = codec.decode_summary(self.row.summary) if self.row.summary else None
        return first_turn(backwards, self.row.start, newest, self.options, summary)


def load(
    connection: Connection,
    now: float,
    key: SessionKey,
    options: LoadOptions,
    known: CachedLog | None,
) -> tuple[Snapshot, CachedLog | None]:
    """The snapshot, and the log to cache, which the next load gets as ``known``."""
    if known is None and _head(connection, key, options, now) is None:
        return Snapshot(), None  # a new session: one statement
    found = load_from_cache(connection, now, key, options, known) if known is not None else None
    return found or consistent_read(connection, lambda c: _load(c, now, key, options))


def load_from_cache(
    connection: Connection, now: float, key: SessionKey, options: LoadOptions, known: CachedLog
) -> tuple[Snapshot, CachedLog | None] | None:
    """The same from the cached log and what was appended; None if more must be read."""
    row = _head(connection, key, options, now, known)
    if row is None:
        return Snapshot(), None
    cached = _extend_cached(_log_query(row, options), known)
    if cached is None:
        return None
    return _snapshot(connection, row, options, LogPart(cached.log, cached.bodies)), cached


def _load(
    connection: Connection, now: float, key: SessionKey, options: LoadOptions
) -> tuple[Snapshot, CachedLog | None]:
    row = _head(connection, key, options, now)
    if row is None:
        return Snapshot(), None
    query = _log_query(row, options)
    begin = 0 if query.is_unbounded else _first_turn(connection, query)
    entries, texts = _texts(connection, _LOG_FROM, (row.session, begin), row.messages)
    older: tuple[Entry, ...] = ()
    if begin:
        older, their_texts = _earlier_turns(connection, row.session, begin, query.last)
        entries, texts = older + entries, their_texts + texts
    log = LogPart(entries, _bodies(entries, texts))
    cached = None if older else query.cached_log(begin, log)
    return _snapshot(connection, row, options, log, whole=bool(begin)), cached


def _snapshot(
    connection: Connection,
    row: SessionRow,
    options: LoadOptions,
    log: LogPart,
    *,
    whole: bool = False,
) -> Snapshot:
    """``whole``: ``log`` is only the end of the log; if the whole log was asked for it is read."""
    last, attempt = row.last, row.attempt
    return Snapshot(
        exists=True,
        owner=row.owner,
        system=codec.text(row.system),
        system_tokens=codec.number(row.system_tokens),
        start=row.start,
        log=_whole_log(connection, row.session) if options.whole and whole else log.entries,
        whole=options.whole,
        bodies=log.bodies,
        alternates=_alternates(connection, row.session) if options.whole else {},
        last=codec.decode_exchange(last, row.last_usage) if last else None,
        attempt=codec.decode_exchange(attempt, row.attempt_usage) if attempt else None,
        messages=codec.number(row.messages),
        tokens=codec.number(row.tokens),
        summary=codec.decode_summary(row.summary) if row.summary else None,
        changes=codec.number(row.changes),
        stalled=bool(row.stalled),
        created_at=row.created_at,
    )


def _bodies(entries: Iterable[Entry], texts: Iterable[bytes | None]) -> dict[str, bytes]:
    return {entry.card.id: body or b"" for entry, body in zip(entries, texts, strict=True)}


def _log_query(row: SessionRow, options: LoadOptions) -> LogQuery:
    return LogQuery(
        stamp=f"{row.session} {row.created_at!r} {row.changes}".encode(),
        row=row,
        last=SeqSpan(row.first, row.size) if row.last else NOTHING,
        options=options,
    )


def _extend_cached(query: LogQuery, known: CachedLog) -> CachedLog | None:
    """The cached log with what was appended since; None if all must be read."""
    log = _with_added(known, query.row) if known.stamp == query.stamp else None
    if log is None or (begin := query.first_turn_in(log.entries)) < known.begin:
        return None
    cached = query.cached_log(known.begin, log)
    if begin == known.begin:
        return cached
    rest = cached.part_from(begin)
    left = len(log.entries) - len(rest.entries)
    return None if any(map(query.is_last, log.entries[:left])) else query.cached_log(begin, rest)


def _with_added(known: CachedLog, row: SessionRow) -> LogPart | None:
    """The cached log and what was appended; None if that is not the complete log in order: late
    answers are inserted into their turn."""
    count = row.messages - known.messages
    if count < 0 or row.invalid:
        return None
    if not count:
        return LogPart(known.log, known.bodies)
    added = codec.decode_log(row.added or b"")
    in_order = all(a.position < b.position for a, b in pairwise((*known.log[-1:], *added)))
    if len(added) != count or not in_order:
        return None
    bodies = _bodies(added, codec.split_joined(row.texts or b"", row.lengths or ""))
    return LogPart(known.log + added, {**known.bodies, **bodies})


def bodies(
    connection: Connection, now: float, key: SessionKey, ids: Collection[str]
) -> dict[str, bytes]:
    return _texts_by_id(connection, _BODY, now, key, ids)


def wires(
    connection: Connection, now: float, key: SessionKey, ids: Collection[str]
) -> dict[str, bytes]:
    return _texts_by_id(connection, _WIRE, now, key, ids)


def _texts_by_id(
    connection: Connection, query: str, now: float, key: SessionKey, ids: Collection[str]
) -> dict[str, bytes]:
    found = {}
    for place in parse_message_ids(ids):
        named = {**key._asdict(), **place._asdict(), "now": now}
        row = connection.execute(query, named).fetchone()
        if row:
            found[message_id(*place)] = codec.text(row[0]) or b""
    return found


def passages(
    connection: Connection,
    now: float,
    tenant: str,
    user: str | None,
    places: Mapping[str, Collection[int]],
) -> tuple[dict[tuple[str, int], Message], set[str]]:
    """Messages by session and seq, and which sessions do not expire by themselves."""
    seqs_by_session = json.dumps({session: list(seqs) for session, seqs in places.items()})
    named = {"places": seqs_by_session, "tenant": tenant, "user": user, "now": now}
    count = sum(map(len, places.values()))
    entries, bodies, homes_json = _rows(connection, _PASSAGES, named, count, _HOMES)
    homes = json.loads(homes_json)
    found = codec.passages([session for session, _ in homes], entries, bodies)
    return found, {session for session, lasts in homes if lasts}


def _texts(
    connection: Connection, query: str, arguments: Any, count: int
) -> tuple[tuple[Entry, ...], list[bytes | None]]:
    """The entries and bodies that ``query`` finds, about ``count`` of each."""
    return _rows(connection, query, arguments, count)[:2]


def _rows(
    connection: Connection, query: str, arguments: Any, count: int, extra: str = "NULL"
) -> tuple[tuple[Entry, ...], list[bytes | None], str]:
    """The same, and a JSON list of the third column; ``extra`` is the SQL that makes it."""
    if count <= PIECE:
        joined = _JOINED.format(extra, query)
        invalid, entries, bodies, lengths, more = connection.execute(joined, arguments).fetchone()
        if not invalid:
            return (
                codec.decode_log(entries or b""),
                codec.split_joined(bodies or b"", lengths or ""),
                more,
            )
    rows = connection.execute(query, arguments).fetchall()
    return (
        codec.decode_pieces(_entries(rows)),
        codec.texts([row[1] for row in rows]),
        f"[{','.join([row[2] for row in rows if row[2:]])}]",
    )


def _head(
    connection: Connection,
    key: SessionKey,
    options: LoadOptions,
    now: float,
    known: CachedLog | None = None,
) -> SessionRow | None:
    arguments = {
        "tenant": key.tenant,
        "session": key.session,
        "profile": options.profile,
        "key": options.idempotency_key or None,
        "oldest": now - IDEMPOTENCY_SECONDS,
        "now": now,
        "known": known.end if known else 0,
    }
    row = connection.execute(_HEAD_SINCE if known else _HEAD, arguments).fetchone()
    return SessionRow(*row) if row else None


def _first_turn(connection: Connection, query: LogQuery) -> int:
    newest = connection.execute(_NEWEST, (query.row.session,)).fetchone()
    if newest is None:
        return 0

    def backwards() -> Iterable[tuple[int, int]]:
        return connection.execute(_BACKWARDS, (query.row.session,))

    return query.first_turn(backwards, newest[0])


def _earlier_turns(
    connection: Connection, session: int, begin: int, last: SeqSpan
) -> tuple[tuple[Entry, ...], list[bytes | None]]:
    """The turns before ``begin`` that the last exchange belongs to: late answers to a call."""
    arguments = {
        "session": session,
        "begin": begin,
        "first": last.first,
        "end": last.first + last.size,
    }
    return _texts(connection, _LOG_BEFORE, arguments, last.size)


def _whole_log(connection: Connection, session: int) -> tuple[Entry, ...]:
    return codec.decode_pieces(_pieces(connection.execute(_CARDS, (session,))))


def _entries(rows: Sequence[Sequence[Any]]) -> Iterator[list[bytes]]:
    for at in range(0, len(rows), PIECE):
        yield [row[0] for row in rows[at : at + PIECE]]


def _pieces(cursor: sqlite3.Cursor) -> Iterator[list[bytes]]:
    while rows := cursor.fetchmany(PIECE):
        yield [row[0] for row in rows]


def _alternates(connection: Connection, session: int) -> dict[str, tuple[Entry, ...]]:
    rows = connection.execute(_IDLE_CHOICES, (session,))
    return codec.alternates(codec.decode_pieces(_pieces(rows)))
