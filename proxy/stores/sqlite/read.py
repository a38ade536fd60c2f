"""What a request reads from the SQLite file: functions of a connection inside a transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from proxy.memory.archive import Message
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Ask,
    Entry,
    Position,
    SessionKey,
    Snapshot,
    Summary,
)
from proxy.stores.common import codec
from proxy.stores.common.history import MessagePlace, SeqSpan, begins_at, fits, locate_all
from proxy.stores.common.known_logs import KnownLog, Log

PIECE = 500
"""Entries that are decoded at once: some milliseconds for which no other thread runs."""

LIVE = "(s.expires_at IS NULL OR s.expires_at > :now)"

SUMMARY = "(SELECT data FROM summaries WHERE session = s.id ORDER BY version DESC LIMIT 1)"
"""The version in force."""

HAS_MESSAGES = """
EXISTS (SELECT 1 FROM messages WHERE session = x.session
        AND seq >= x.first AND seq < x.first + x.size)
"""
"""Of an exchange x."""

# One statement for all that is not a message; each join finds at most one row.
_HEAD = f"""
SELECT s.id, s.owner, s.system, s.system_tokens, s.messages, s.tokens, w.turn, w.seq,
       x.first, x.size, x.record, x.usage, a.record, a.usage, s.changes, s.stalled, s.created_at,
       s.next, {SUMMARY}
FROM sessions s
LEFT JOIN windows w ON w.session = s.id AND w.profile = :profile
LEFT JOIN exchanges x ON x.session = s.id AND x.id = s.last
LEFT JOIN keys k ON k.session = s.id AND k.key = :key
LEFT JOIN exchanges a ON a.session = s.id AND a.id = k.exchange AND a.created_at > :oldest
WHERE s.tenant = :tenant AND s.session = :session AND {LIVE}
"""

_PLACE = """
SELECT m.turn, m.seq, m.tokens, m.active FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq = x.first + :index
WHERE x.session = :session AND x.id = :exchange AND :index < x.size
"""

_BODY = """
SELECT m.body FROM sessions s
JOIN exchanges x ON x.session = s.id AND x.id = :exchange
JOIN messages m ON m.session = x.session AND m.seq = x.first + :index AND :index < x.size
WHERE s.tenant = :tenant AND s.session = :name
"""

# Places are seqs by session.  CROSS JOIN: what is asked for comes first, and each is looked up.
_PASSAGES = f"""
SELECT m.entry, m.body, s.session FROM json_each(:places) AS place
CROSS JOIN sessions s ON s.tenant = :tenant AND s.session = place.key AND {LIVE}
    AND (:user IS NULL OR s.owner = :user)
CROSS JOIN json_each(place.value) AS seq
CROSS JOIN messages m ON m.session = s.id AND m.seq = seq.value AND m.active = 1
"""

_ID = f"SELECT s.id FROM sessions s WHERE s.tenant = ? AND s.session = ? AND {LIVE}".replace(
    ":now", "?"
)

_NEWEST = """
SELECT turn FROM messages WHERE session = ? AND active = 1 ORDER BY turn DESC LIMIT 1
"""

_BACKWARDS = """
SELECT turn, tokens FROM messages WHERE session = ? AND active = 1 ORDER BY turn DESC, seq DESC
"""

_LOG_FROM = """
SELECT entry, body FROM messages WHERE session = ? AND active = 1 AND turn >= ? ORDER BY turn, seq
"""

_LOG_BEFORE = """
SELECT entry, body FROM messages WHERE session = :session AND active = 1
    AND turn IN (
        SELECT turn FROM messages
        WHERE session = :session AND seq >= :first AND seq < :end AND active = 1 AND turn < :begin
    )
ORDER BY turn, seq
"""

# Each row that is fetched lets go of the interpreter and waits for it again, behind all that the
# loop has to do: so all of them come as one.
_JOINED = """
SELECT CAST(group_concat(entry, ',') AS BLOB), CAST(group_concat(body, '') AS BLOB),
       group_concat(length(body)),
       total(typeof(entry) <> 'blob' OR typeof(body) <> 'blob'), {}
FROM ({})
"""
_SESSIONS = "json_group_array(session)"

_CARDS = "SELECT entry FROM messages WHERE session = ? AND active = 1 ORDER BY turn, seq"

_IDLE_CHOICES = """
SELECT m.entry FROM exchanges x
JOIN messages m ON m.session = x.session AND m.seq >= x.first AND m.seq < x.first + x.size
WHERE x.session = ? AND x.choices = 1 AND m.active = 0
ORDER BY x.first, m.seq
"""

NOTHING = SeqSpan(0, 0)


class Sought(NamedTuple):
    """The log that a load is to find: what its session says of it, and what is asked for.

    ``last`` is where the newest exchange stands.
    """

    session: int
    stamp: bytes
    messages: int
    tokens: int
    end: int
    start: Position | None
    last: SeqSpan
    ask: Ask
    summary: Summary | None

    @property
    def unbounded(self) -> bool:
        return self.start is None and fits(self.messages, self.tokens, self.ask)

    def known(self, begin: int, log: Log) -> KnownLog:
        return KnownLog(self.stamp, self.end, self.messages, begin, *log)

    def is_last(self, entry: Entry) -> bool:
        """Whether it is of the newest exchange."""
        return self.last.first <= entry.position.seq < self.last.first + self.last.size

    def begin_in(self, log: Sequence[Entry]) -> int:
        """The turn that it begins with, given the end of the log: lower, where that is too little
        to tell."""
        if self.unbounded or not log:
            return 0

        def backwards() -> Iterable[tuple[int, int]]:
            return ((entry.position.turn, entry.card.tokens) for entry in reversed(log))

        return begins_at(backwards, self.start, log[-1].position.turn, self.ask, self.summary)


PlaceRow = tuple[int, int, int, int]
"""turn, seq, tokens, active"""


_LOG_SINCE = """
SELECT entry, body FROM messages WHERE session = ? AND seq >= ? AND active = 1 ORDER BY seq
"""


def load(
    connection: sqlite3.Connection,
    now: float,
    key: SessionKey,
    ask: Ask,
    known: KnownLog | None = None,
) -> tuple[Snapshot, KnownLog | None]:
    """What a session is, and its log to be ``known`` the next time."""
    head = _head(connection, key, ask, now)
    if head is None:
        return Snapshot(), None
    id, owner, system, system_tokens, messages, tokens, turn, seq = head[:8]
    first, size, last, last_usage, attempt, attempt_usage = head[8:14]
    changes, stalled, created_at, end, made = head[14:]
    summary = codec.decode_summary(made) if made else None
    sought = Sought(
        session=id,
        stamp=f"{id} {created_at!r} {changes}".encode(),
        messages=codec.number(messages),
        tokens=codec.number(tokens),
        end=codec.number(end),
        start=None if turn is None else Position(turn, seq),
        last=SeqSpan(first, size) if last else NOTHING,
        ask=ask,
        summary=summary,
    )
    begin, log, learned = _log(connection, sought, known)
    snapshot = Snapshot(
        exists=True,
        owner=owner,
        system=codec.text(system),
        system_tokens=codec.number(system_tokens),
        start=sought.start,
        log=_whole_log(connection, id) if ask.whole and begin else log.entries,
        whole=ask.whole,
        bodies=log.bodies,
        alternates=_alternates(connection, id) if ask.whole else {},
        last=codec.decode_exchange(last, last_usage) if last else None,
        attempt=codec.decode_exchange(attempt, attempt_usage) if attempt else None,
        messages=sought.messages,
        tokens=sought.tokens,
        summary=summary,
        changes=codec.number(changes),
        stalled=bool(stalled),
    )
    return snapshot, learned


def _log(
    connection: sqlite3.Connection, sought: Sought, known: KnownLog | None
) -> tuple[int, Log, KnownLog | None]:
    """The turn that the log begins with, the log, and what is known of it then."""
    if known is not None and (learned := _caught_up(connection, sought, known)):
        log = Log(learned.log, learned.bodies)
        return learned.begin, log, learned
    begin = 0 if sought.unbounded else _first_turn(connection, sought)
    entries, texts = _texts(connection, _LOG_FROM, (sought.session, begin), sought.messages)
    older: tuple[Entry, ...] = ()
    if begin:
        older, their_texts = _before(connection, sought.session, begin, sought.last)
        entries, texts = older + entries, their_texts + texts
    log = Log(
        entries, {entry[1].id: body or b"" for entry, body in zip(entries, texts, strict=True)}
    )
    return begin, log, None if older else sought.known(begin, log)


def _caught_up(connection: sqlite3.Connection, sought: Sought, known: KnownLog) -> KnownLog | None:
    """What is known together with what was appended since; None where all must be read."""
    count = sought.messages - known.messages
    if known.stamp != sought.stamp or count < 0:
        return None
    log, bodies = known.log, known.bodies
    if count:
        added, texts = _texts(connection, _LOG_SINCE, (sought.session, known.end), count)
        in_order = all(a.position < b.position for a, b in pairwise((*known.log[-1:], *added)))
        if len(added) != count or not in_order:
            return None  # what came late stands farther up
        log += added
        new = zip(added, texts, strict=True)
        bodies = {**bodies, **{entry[1].id: body or b"" for entry, body in new}}
    begin = sought.begin_in(log)
    if begin < known.begin or any(sought.is_last(e) for e in log if e.position.turn < begin):
        return None
    whole = sought.known(known.begin, Log(log, bodies))
    return whole if begin == known.begin else sought.known(begin, whole.since(begin))


def bodies(
    connection: sqlite3.Connection, now: float, key: SessionKey, ids: Collection[str]
) -> dict[str, bytes]:
    found = {}
    for place in locate_all(ids):
        row = connection.execute(
            f"{_BODY} AND {LIVE}",
            {
                "tenant": key.tenant,
                "name": key.session,
                "exchange": place.exchange,
                "index": place.number,
                "now": now,
            },
        ).fetchone()
        if row:
            found[f"{place.exchange}.{place.number}"] = codec.text(row[0]) or b""
    return found


def passages(
    connection: sqlite3.Connection,
    now: float,
    tenant: str,
    user: str | None,
    places: Mapping[str, Collection[int]],
) -> dict[tuple[str, int], Message]:
    asked = json.dumps({session: list(seqs) for session, seqs in places.items()})
    named = {"places": asked, "tenant": tenant, "user": user, "now": now}
    most = sum(map(len, places.values()))
    entries, bodies, sessions = _rows(connection, _PASSAGES, named, most, _SESSIONS)
    return codec.passages(json.loads(sessions), entries, bodies)


def _texts(
    connection: sqlite3.Connection, query: str, arguments: Any, most: int
) -> tuple[tuple[Entry, ...], list[bytes | None]]:
    """Entries and bodies that ``query`` finds, about so many at ``most``."""
    return _rows(connection, query, arguments, most)[:2]


def _rows(
    connection: sqlite3.Connection, query: str, arguments: Any, most: int, third: str = "NULL"
) -> tuple[tuple[Entry, ...], list[bytes | None], str]:
    """The same, and a JSON list of each row's third column, where ``third`` is what makes it."""
    if most <= PIECE:
        row = connection.execute(_JOINED.format(third, query), arguments).fetchone()
        if not row[3]:  # else something is there that was never written so: see below
            return codec.decode_log(row[0] or b""), codec.cut(row[1] or b"", row[2] or ""), row[4]
    rows = connection.execute(query, arguments).fetchall()
    bodies = codec.texts([row[1] for row in rows])
    return (
        codec.decode_pieces(_entries(rows)),
        bodies,
        json.dumps([row[2] for row in rows if row[2:]]),
    )


def find(connection: sqlite3.Connection, key: SessionKey, now: float) -> int | None:
    """The row id of a session that has not expired."""
    row = connection.execute(_ID, (key.tenant, key.session, now)).fetchone()
    return row[0] if row else None


def look_up(
    connection: sqlite3.Connection, session: int, place: MessagePlace | None
) -> PlaceRow | None:
    """Turn, seq, tokens and state of a message, None if history does not have it."""
    if place is None:
        return None
    arguments = {"session": session, "exchange": place.exchange, "index": place.number}
    row: PlaceRow | None = connection.execute(_PLACE, arguments).fetchone()
    return row


def _head(connection: sqlite3.Connection, key: SessionKey, ask: Ask, now: float) -> Any:
    arguments = {
        "tenant": key.tenant,
        "session": key.session,
        "profile": ask.profile,
        "key": ask.idempotency_key or None,
        "oldest": now - IDEMPOTENCY_SECONDS,
        "now": now,
    }
    return connection.execute(_HEAD, arguments).fetchone()


def _first_turn(connection: sqlite3.Connection, sought: Sought) -> int:
    newest = connection.execute(_NEWEST, (sought.session,)).fetchone()
    if newest is None:
        return 0

    def backwards() -> Iterable[tuple[int, int]]:
        return connection.execute(_BACKWARDS, (sought.session,))

    return begins_at(backwards, sought.start, newest[0], sought.ask, sought.summary)


def _before(
    connection: sqlite3.Connection, session: int, begin: int, last: SeqSpan
) -> tuple[tuple[Entry, ...], list[bytes | None]]:
    """The turns before ``begin`` that the last exchange belongs to: late answers to a call."""
    arguments = {
        "session": session,
        "begin": begin,
        "first": last.first,
        "end": last.first + last.size,
    }
    return _texts(connection, _LOG_BEFORE, arguments, last.size)


def _whole_log(connection: sqlite3.Connection, session: int) -> tuple[Entry, ...]:
    return codec.decode_pieces(_pieces(connection.execute(_CARDS, (session,))))


def _entries(rows: Sequence[Sequence[Any]]) -> Iterator[list[bytes]]:
    for at in range(0, len(rows), PIECE):
        yield [row[0] for row in rows[at : at + PIECE]]


def _pieces(cursor: sqlite3.Cursor) -> Iterator[list[bytes]]:
    while rows := cursor.fetchmany(PIECE):
        yield [row[0] for row in rows]


def _alternates(connection: sqlite3.Connection, session: int) -> dict[str, tuple[Entry, ...]]:
    rows = connection.execute(_IDLE_CHOICES, (session,))
    return codec.alternates(codec.decode_pieces(_pieces(rows)))
