"""Commits to the SQLite file: functions of a connection inside BEGIN IMMEDIATE."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection

import msgspec

from proxy.memory.archive import StoredMessage
from proxy.memory.erasure import Subject
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
    parse_message_id,
    parse_message_ids,
    with_size,
)
from proxy.stores.common.rules import NO_MARK, digest_of, is_refused, session_subject
from proxy.stores.common.steps import CommitStep
from proxy.stores.sqlite import summaries as sqlite_summaries
from proxy.stores.sqlite import work as sqlite_work
from proxy.stores.sqlite.marks import mark_of
from proxy.stores.sqlite.revise import edit_answer
from proxy.stores.sqlite.rows import (
    HEAD,
    NO_SYSTEM,
    Head,
    find_head,
    find_message,
    insert_exchanges,
    insert_head,
    insert_messages,
    live_head,
    new_session_head,
    save_head,
    set_active,
    text_in,
)
from proxy.stores.sqlite.waste import WASTE, purge

# Everything that a commit has to read first, in one statement: each releases the GIL and waits for
# it again.
_FOUND = f"""
SELECT ({WASTE.replace("?1", ":now")}), (
    SELECT max(until) FROM erasures WHERE expires_at > :now AND subject IN (:mark, :user_mark)
), EXISTS (SELECT 1 FROM exchanges WHERE session = s.id AND id = :exchange), (
    SELECT instr({text_in("record")}, :broken_off) FROM exchanges
    WHERE s.last <> :seen AND session = s.id AND id = s.last
), {HEAD}
FROM (SELECT 1) LEFT JOIN sessions s ON s.tenant = :tenant AND s.session = :session
"""

_ATTEMPT = """
SELECT x.id, x.started_at, x.size FROM keys k
JOIN exchanges x ON x.session = k.session AND x.id = k.exchange
WHERE k.session = ? AND k.key = ? AND x.created_at > ?
"""

# A window moves only forwards, unless it was computed anew.
_MOVE_WINDOW = """
INSERT INTO windows (session, profile, turn, seq) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (session, profile) DO UPDATE SET turn = ?3, seq = ?4
    WHERE ?5 OR (turn, seq) < (?3, ?4)
"""


class Attempt(msgspec.Struct, frozen=True):
    """The exchange that an Idempotency-Key names."""

    id: str
    started_at: float
    size: int


class CommitState(msgspec.Struct, frozen=True):
    """The head of a commit's session, whether it has the exchange already, the latest erasure mark
    of the session and of the commit's user, and whether the newest exchange is not the one that the
    commit has seen, and was broken off."""

    head: Head | None
    known: bool
    mark: float
    newest_broken_off: bool


def commit(connection: Connection, now: float, key: SessionKey, commit: Commit) -> Outcome:
    exchange = with_size(commit)
    found = _read_state(connection, now, key, commit)
    head, attempt = found.head, None
    if head is not None:
        attempt = _attempt(connection, head.id, commit.idempotency_key, exchange.created_at)
        refused = _refusal(found, head, commit, attempt)
        if refused:
            return refused
    if is_refused(_latest_mark(connection, key.tenant, found, commit, now), exchange.started_at):
        return "erased"
    new = head is None
    head = head or new_session_head(exchange.created_at, commit.ttl)
    _change_states(connection, head, commit, attempt)
    if isinstance(commit, CommitStep):
        if not new:
            save_head(connection, head)
        return "recorded"
    _append(connection, now, key, head, exchange, commit, new=new)
    _save_window_and_key(connection, head, commit)
    for due in commit.work_requests:
        sqlite_work.enqueue(connection, key, due)
    return "recorded"


def amend(connection: Connection, now: float, key: SessionKey, amendment: Amendment) -> int | None:
    head = find_head(connection, key, now)
    row = connection.execute(
        "SELECT first, size, usage FROM exchanges WHERE session = ? AND id = ?",
        (head.id if head else None, amendment.exchange),
    ).fetchone()
    if head is None or row is None:
        return None
    if amendment.usage is not None and row[2] is None:
        connection.execute(
            "UPDATE exchanges SET usage = ? WHERE session = ? AND id = ?",
            (bytes(amendment.usage), head.id, amendment.exchange),
        )
    span = SeqSpan(row[0], row[1])
    for draft in amendment.drafts:
        _insert_reserved(connection, head, amendment.exchange, span, draft)
    edited, seq = amendment.edited, None
    if edited is not None and edited.card.exchange == amendment.exchange:
        seq = edit_answer(connection, head, edited)
    save_head(connection, head)
    return seq


# Refusing


def _read_state(connection: Connection, now: float, key: SessionKey, commit: Commit) -> CommitState:
    mark = digest_of(session_subject(key))
    named = {
        "now": now,
        "tenant": key.tenant,
        "session": key.session,
        "exchange": commit.exchange.id,
        "mark": mark,
        "user_mark": digest_of(Subject(key.tenant, commit.user)) if commit.user else mark,
        "seen": commit.planned_for.last_exchange if commit.planned_for else None,
        "broken_off": codec.BROKEN_OFF,
    }
    waste, until, known, broken_off, *row = connection.execute(_FOUND, named).fetchone()
    if waste:
        purge(connection, now)
        _, until, known, broken_off, *row = connection.execute(_FOUND, named).fetchone()
    head = live_head(connection, row if row[0] is not None else None, now)
    latest = NO_MARK if until is None else until
    return CommitState(head, head is not None and bool(known), latest, bool(broken_off))


def _latest_mark(
    connection: Connection, tenant: str, found: CommitState, commit: Commit, now: float
) -> float:
    """The latest erasure mark of the session, of the commit's user and of the session's owner."""
    owner = found.head.owner if found.head else None
    if not owner or owner == commit.user:
        return found.mark
    return max(found.mark, mark_of(connection, [Subject(tenant, owner)], now))


def _attempt(connection: Connection, session: int, key: str | None, now: float) -> Attempt | None:
    if not key:
        return None
    oldest = now - IDEMPOTENCY_SECONDS
    row = connection.execute(_ATTEMPT, (session, key, oldest)).fetchone()
    return Attempt(*row) if row else None


def _refusal(
    found: CommitState, head: Head, commit: Commit, attempt: Attempt | None
) -> Outcome | None:
    if found.known:
        return "duplicate"
    if commit.user and head.owner and commit.user != head.owner:
        return "foreign"
    if attempt is not None and attempt.id != head.last:
        return "stale"
    if attempt is not None and attempt.started_at > commit.exchange.started_at:
        return "outrun"
    return "outdated" if _is_outdated(found, head, commit) else None


def _is_outdated(found: CommitState, head: Head, commit: Commit) -> bool:
    seen = commit.planned_for
    if seen is None:
        return False
    if seen.changes != head.changes:
        return True
    if seen.last_exchange == (head.last or ""):
        return False
    return commit.branches_off or commit.exchange.incomplete or found.newest_broken_off


# Superseding and activating


def _change_states(
    connection: Connection, head: Head, commit: Commit, attempt: Attempt | None
) -> None:
    gone: list[MessagePlace] = []
    if attempt is not None:
        gone += (MessagePlace(attempt.id, index) for index in range(attempt.size))
    gone += parse_message_ids(commit.superseded)
    if not (gone or commit.activated):
        return
    switched = {
        *set_active(connection, head, gone, active=False),
        *set_active(connection, head, parse_message_ids(commit.activated), active=True),
    }
    sqlite_summaries.drop_covering(connection, head.id, switched)


# Appending


def _append(
    connection: Connection,
    now: float,
    key: SessionKey,
    head: Head,
    exchange: Exchange,
    commit: Commit,
    *,
    new: bool,
) -> None:
    """Write the exchange and its messages, and the updated head; ``new``: of a new session."""
    lines = _lines(connection, head, commit.drafts)
    first = head.next
    head.next += exchange.size
    head.last = exchange.id
    head.owner = head.owner or commit.user or None
    head.expires_at = now + head.ttl if head.ttl else None
    head.last_active_at = max(head.last_active_at, exchange.created_at)
    system = (commit.system, commit.system_tokens) if commit.system else NO_SYSTEM
    if new:
        insert_head(connection, key, head, exchange.created_at, system)
    else:
        save_head(connection, head, system)
    choices = (exchange.id,) if codec.has_choices(each.card for each in commit.drafts) else ()
    insert_exchanges(connection, head.id, [(first, exchange)], choices)
    insert_messages(connection, head.id, lines)


def _lines(connection: Connection, head: Head, drafts: Sequence[Draft]) -> list[StoredMessage]:
    """The drafts as stored messages, with consecutive seqs from the next free one; adds them to the
    counts of the head."""
    lines: list[StoredMessage] = []
    turns: dict[str, int] = {}
    for seq, draft in enumerate(drafts, head.next):
        turn = turns.get(draft.turn)
        line = _line(connection, head, seq, draft, turn)
        turns[draft.card.id] = line.position.turn
        lines.append(line)
    return lines


def _line(
    connection: Connection, head: Head, seq: int, draft: Draft, turn: int | None = None
) -> StoredMessage:
    """A draft as a stored message; ``turn`` if it is known already.  Adds it to the counts."""
    card = draft.card
    if turn is None and draft.turn != card.id:
        began = find_message(connection, head.id, parse_message_id(draft.turn))
        turn = began[0] if began else None
    if draft.state == "active":
        head.messages += 1
        head.tokens += card.tokens
    place = Position(seq if turn is None else turn, seq)
    return StoredMessage(place, card, draft.state, draft.body, draft.wire)


def _insert_reserved(
    connection: Connection, head: Head, exchange: str, span: SeqSpan, draft: Draft
) -> None:
    """Insert a draft at its reserved place, if nothing is there yet."""
    place = parse_message_id(draft.card.id)
    seq = span.seq(place.number) if place else None
    if place is None or seq is None or place.exchange != exchange:
        return
    if find_message(connection, head.id, place) is not None:
        return
    insert_messages(connection, head.id, [_line(connection, head, seq, draft)])
    if is_choice(draft.card):
        connection.execute(
            "UPDATE exchanges SET choices = 1 WHERE session = ? AND id = ?", (head.id, exchange)
        )


def _save_window_and_key(connection: Connection, head: Head, commit: Commit) -> None:
    if commit.window:
        _move_window(connection, head, commit.window)
    if commit.idempotency_key:
        connection.execute(
            "INSERT OR REPLACE INTO keys (session, key, exchange, created_at) VALUES (?, ?, ?, ?)",
            (head.id, commit.idempotency_key, commit.exchange.id, commit.exchange.created_at),
        )
        # Kept a day longer than needed, for commits that waited in a spool.
        connection.execute(
            "DELETE FROM keys WHERE session = ? AND created_at <= ?",
            (head.id, commit.exchange.created_at - 2 * IDEMPOTENCY_SECONDS),
        )


def _move_window(connection: Connection, head: Head, move: WindowMove) -> None:
    row = find_message(connection, head.id, parse_message_id(move.start))
    if row:
        arguments = (head.id, move.profile, row[0], row[1], move.may_move_back)
        connection.execute(_MOVE_WINDOW, arguments)
