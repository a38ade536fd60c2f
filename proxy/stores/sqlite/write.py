"""What is written to the SQLite file: functions of a connection inside BEGIN IMMEDIATE."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from proxy.memory.archive import StoredMessage
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Commit,
    Draft,
    Exchange,
    Outcome,
    Position,
    SessionKey,
    WindowMove,
)
from proxy.stores.common import codec
from proxy.stores.common.history import (
    MessagePlace,
    SeqSpan,
    is_choice,
    locate,
    locate_all,
    sized,
)
from proxy.stores.common.rules import forbids, of_session, of_users
from proxy.stores.sqlite import summaries as sqlite_summaries
from proxy.stores.sqlite import work as sqlite_work
from proxy.stores.sqlite.archive import purge
from proxy.stores.sqlite.marks import mark_of
from proxy.stores.sqlite.read import look_up
from proxy.stores.sqlite.rows import (
    Head,
    find_head,
    insert_exchange,
    insert_messages,
    new_head,
    save_head,
    switch,
)

_ATTEMPT = """
SELECT x.id, x.started_at, x.size FROM keys k
JOIN exchanges x ON x.session = k.session AND x.id = k.exchange
WHERE k.session = ? AND k.key = ? AND x.created_at > ?
"""

# A window moves forwards only, unless it was found anew.
_MOVE_WINDOW = """
INSERT INTO windows (session, profile, turn, seq) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (session, profile) DO UPDATE SET turn = ?3, seq = ?4
    WHERE ?5 OR (turn, seq) < (?3, ?4)
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The exchange that an Idempotency-Key names."""

    id: str
    started_at: float
    size: int


def commit(connection: sqlite3.Connection, now: float, key: SessionKey, commit: Commit) -> Outcome:
    purge(connection, now)
    exchange = sized(commit)
    head = find_head(connection, key, now)
    attempt = None
    if head is not None:
        attempt = _attempt(connection, head.id, commit.idempotency_key, exchange.created_at)
        refused = _refusal(connection, head, commit, attempt)
        if refused:
            return refused
    whose = of_users(key.tenant, commit.user, head.owner if head else None)
    if forbids(mark_of(connection, [of_session(key), *whose], now), exchange.started_at):
        return "erased"
    head = head or new_head(connection, key, exchange.created_at, commit.ttl)
    _switch(connection, head, commit, attempt)
    head.owner = head.owner or commit.user or None
    _append(connection, head, exchange, commit.drafts)
    _remember(connection, head, commit)
    head.expires_at = now + head.ttl if head.ttl else None
    head.last_active_at = max(head.last_active_at, exchange.created_at)
    save_head(connection, head)
    for due in commit.due:
        sqlite_work.enqueue(connection, key, due)
    return "recorded"


def amend(
    connection: sqlite3.Connection, now: float, key: SessionKey, amendment: Amendment
) -> None:
    head = find_head(connection, key, now)
    row = connection.execute(
        "SELECT first, size, usage FROM exchanges WHERE session = ? AND id = ?",
        (head.id if head else None, amendment.exchange),
    ).fetchone()
    if head is None or row is None:
        return
    if amendment.usage is not None and row[2] is None:
        connection.execute(
            "UPDATE exchanges SET usage = ? WHERE session = ? AND id = ?",
            (bytes(amendment.usage), head.id, amendment.exchange),
        )
    span = SeqSpan(row[0], row[1])
    for draft in amendment.drafts:
        _fill(connection, head, amendment.exchange, span, draft)
    save_head(connection, head)


# Refusing


def _attempt(
    connection: sqlite3.Connection, session: int, key: str | None, now: float
) -> Attempt | None:
    if not key:
        return None
    oldest = now - IDEMPOTENCY_SECONDS
    row = connection.execute(_ATTEMPT, (session, key, oldest)).fetchone()
    return Attempt(*row) if row else None


def _refusal(
    connection: sqlite3.Connection, head: Head, commit: Commit, attempt: Attempt | None
) -> Outcome | None:
    known = connection.execute(
        "SELECT 1 FROM exchanges WHERE session = ? AND id = ?", (head.id, commit.exchange.id)
    ).fetchone()
    if known:
        return "duplicate"
    if commit.user and head.owner and commit.user != head.owner:
        return "foreign"
    if attempt is None:
        return None
    if attempt.id != head.last:
        return "stale"
    return "outrun" if attempt.started_at > commit.exchange.started_at else None


# Superseding and activating


def _switch(
    connection: sqlite3.Connection, head: Head, commit: Commit, attempt: Attempt | None
) -> None:
    gone: list[MessagePlace] = []
    if attempt is not None:
        gone += (MessagePlace(attempt.id, index) for index in range(attempt.size))
    gone += locate_all(commit.superseded)
    switched = {
        *switch(connection, head, gone, active=False),
        *switch(connection, head, locate_all(commit.activated), active=True),
    }
    sqlite_summaries.drop_covering(connection, head.id, switched)


# Appending


def _append(
    connection: sqlite3.Connection, head: Head, exchange: Exchange, drafts: tuple[Draft, ...]
) -> None:
    choices = codec.has_choices(draft.card for draft in drafts)
    insert_exchange(connection, head.id, head.next, exchange, choices=choices)
    for seq, draft in enumerate(drafts, head.next):
        _put(connection, head, seq, draft)
    head.next += exchange.size
    head.last = exchange.id


def _put(connection: sqlite3.Connection, head: Head, seq: int, draft: Draft) -> None:
    card = draft.card
    began = None if draft.turn == card.id else look_up(connection, head.id, locate(draft.turn))
    turn = began[0] if began else seq
    line = StoredMessage(Position(turn, seq), card, draft.state, draft.body, draft.wire)
    insert_messages(connection, head.id, [line])
    if draft.state == "active":
        head.messages += 1
        head.tokens += card.tokens


def _fill(
    connection: sqlite3.Connection, head: Head, exchange: str, span: SeqSpan, draft: Draft
) -> None:
    """Put a draft at its reserved place, once."""
    place = locate(draft.card.id)
    seq = span.seq(place.number) if place else None
    if place is None or seq is None or place.exchange != exchange:
        return
    if look_up(connection, head.id, place) is not None:
        return
    _put(connection, head, seq, draft)
    if is_choice(draft.card):
        connection.execute(
            "UPDATE exchanges SET choices = 1 WHERE session = ? AND id = ?", (head.id, exchange)
        )


def _remember(connection: sqlite3.Connection, head: Head, commit: Commit) -> None:
    if commit.system:
        connection.execute(
            "UPDATE sessions SET system = ?, system_tokens = ? WHERE id = ?",
            (commit.system, commit.system_tokens, head.id),
        )
    if commit.window:
        _move_window(connection, head, commit.window)
    if commit.idempotency_key:
        connection.execute(
            "INSERT OR REPLACE INTO keys (session, key, exchange, created_at) VALUES (?, ?, ?, ?)",
            (head.id, commit.idempotency_key, commit.exchange.id, commit.exchange.created_at),
        )
        # A day longer than they count: a commit that waited in a spool finds what it would have.
        connection.execute(
            "DELETE FROM keys WHERE session = ? AND created_at <= ?",
            (head.id, commit.exchange.created_at - 2 * IDEMPOTENCY_SECONDS),
        )


def _move_window(connection: sqlite3.Connection, head: Head, move: WindowMove) -> None:
    row = look_up(connection, head.id, locate(move.start))
    if row:
        arguments = (head.id, move.profile, row[0], row[1], move.anew)
        connection.execute(_MOVE_WINDOW, arguments)
