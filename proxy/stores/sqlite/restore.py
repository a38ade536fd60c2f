"""Restores a session into the SQLite file, inside BEGIN IMMEDIATE.

A large one is written in steps, so that others can commit in between: under a hidden name, with a
time to live in case it is never published.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import pairwise
from sqlite3 import Connection
from typing import NamedTuple

from proxy.memory.archive import PlacedExchange, SessionArchive, StoredMessage
from proxy.memory.erasure import Subject
from proxy.memory.model import MAX_VERSIONS, SessionKey
from proxy.memory.store import StoreError
from proxy.stores.common import codec
from proxy.stores.common.history import RestoredCounts, counts_of
from proxy.stores.common.rules import digest_of, session_subject, user_subjects
from proxy.stores.sqlite.marks import is_erased
from proxy.stores.sqlite.rows import (
    STAGED,
    Head,
    find_head,
    insert_exchanges,
    insert_messages,
    mark_removed,
    remove,
    restored_head,
    save_details,
    save_head,
)

STEP_MESSAGES = 1000
"""Messages that one step writes, and exchanges."""

STEP_BYTES = 8_000_000
"""Bytes of messages that one step writes, about."""

_IS_THERE = "SELECT 1 FROM messages WHERE session = ? AND seq = ?"


class StagedSession(NamedTuple):
    """A session that is being restored: its hidden name, its archive and counts, the messages that
    each step writes, and the time when it was read."""

    name: str
    archived: SessionArchive
    counts: RestoredCounts
    parts: Sequence[slice]
    since: float | None = None


STAGED_SECONDS = 600.0
"""Seconds until a staged session that was not published is removed."""


def parts_of(archived: SessionArchive) -> list[slice]:
    """The slices of a session's messages that each step writes."""
    ends, size = [0], 0
    for number, line in enumerate(archived.lines, start=1):
        size += line.size
        if (
            size >= STEP_BYTES
            or number == ends[-1] + STEP_MESSAGES
            or number == len(archived.lines)
        ):
            ends.append(number)
            size = 0
    return [slice(*part) for part in pairwise(ends)]


def stage(
    connection: Connection, now: float, key: SessionKey, archived: SessionArchive
) -> str | None:
    """Begin to restore a session; its hidden name, or None if the key has a session already."""
    if find_head(connection, key, now) is not None:
        return None
    name = f"{_hidden_prefix(key)}.{secrets.token_hex(16)}"
    head = restored_head(connection, SessionKey(STAGED, name), archived.session.created_at, 0)
    head.owner = _hidden_owner(key.tenant, archived.session.user)
    head.expires_at = now + STAGED_SECONDS
    save_head(connection, head)
    return name


def write_step(staged: StagedSession, step: int, connection: Connection) -> None:
    """Write a step of a session; repeating it changes nothing.  Raises StoreError if the earlier
    steps have expired."""
    name, archived, counts, parts, _ = staged
    lines = archived.lines[parts[step]]
    end = (step + 1) * STEP_MESSAGES if step + 1 < len(parts) else None
    exchanges = archived.exchanges[step * STEP_MESSAGES : end]
    session = _find_staged(connection, name)
    first = lines[0].position.seq if lines else 0
    if not connection.execute(_IS_THERE, (session, first)).fetchone():
        _insert(connection, session, lines, exchanges, counts.choices)


def publish(staged: StagedSession, key: SessionKey, now: float, connection: Connection) -> bool:
    """Make a staged session visible; False if it may not be any more, and then remove it."""
    name, archived, counts, _, since = staged
    session = _find_staged(connection, name)
    if not _may_restore(connection, now, key, archived, since):
        remove(connection, session)
        return False
    connection.execute("UPDATE sessions SET tenant = ?, session = ? WHERE id = ?", (*key, session))
    head = find_head(connection, key, now)
    assert head is not None  # it has just got this name, and lives
    head.ttl = archived.session.details.ttl
    _complete(connection, head, archived, counts, now)
    return True


def discard(connection: Connection, name: str) -> None:
    """Remove a staged session, if anything is left of it."""
    with suppress(StoreError):
        remove(connection, _find_staged(connection, name))


def cancel(connection: Connection, key: SessionKey) -> None:
    """Cancel the restores for this key: they are never published."""
    prefix = _hidden_prefix(key)
    _remove_staged(connection, "session > ? AND session < ?", f"{prefix}.", f"{prefix}/")


def cancel_all(connection: Connection, tenant: str, user: str) -> None:
    """Cancel the restores for this user: they are never published."""
    _remove_staged(connection, "owner = ?", _hidden_owner(tenant, user))


def _remove_staged(connection: Connection, where: str, *values: str | None) -> None:
    query = f"SELECT id FROM sessions WHERE tenant = ? AND {where}"
    for (session,) in connection.execute(query, (STAGED, *values)).fetchall():
        mark_removed(connection, session)


def _hidden_prefix(key: SessionKey) -> str:
    """The prefix of the hidden names for a key, by which an erasure finds what a killed process
    left."""
    return digest_of(session_subject(key)).hex()


def _hidden_owner(tenant: str, user: str | None) -> str | None:
    """The owner of a staged session, by which an erasure of the user finds it."""
    return digest_of(Subject(tenant, user)).hex() if user else None


def _find_staged(connection: Connection, name: str) -> int:
    row = connection.execute(
        "SELECT id FROM sessions WHERE tenant = ? AND session = ?", (STAGED, name)
    ).fetchone()
    if row is None:
        raise StoreError("what was brought of a session has expired")
    return int(row[0])


def _may_restore(
    connection: Connection,
    now: float,
    key: SessionKey,
    archived: SessionArchive,
    since: float | None,
) -> bool:
    """Whether a session may be restored under this key: there is none, and neither it nor its owner
    was erased after ``since``."""
    whose = [session_subject(key), *user_subjects(key.tenant, archived.session.user)]
    return not is_erased(connection, now, whose, since) and find_head(connection, key, now) is None


def restore(
    connection: Connection,
    now: float,
    key: SessionKey,
    archived: SessionArchive,
    since: float | None = None,
) -> bool:
    """Restore a small session in one step."""
    if not _may_restore(connection, now, key, archived, since):
        return False
    session = archived.session
    head = restored_head(connection, key, session.created_at, session.details.ttl)
    counts = counts_of(archived)
    _insert(connection, head.id, archived.lines, archived.exchanges, counts.choices)
    _complete(connection, head, archived, counts, now)
    return True


def _insert(
    connection: Connection,
    session: int,
    lines: Sequence[StoredMessage],
    exchanges: Sequence[PlacedExchange],
    choices: Collection[str],
) -> None:
    places = ((placed.first, placed.exchange) for placed in exchanges)
    insert_exchanges(connection, session, places, choices)
    insert_messages(connection, session, lines)


def _complete(
    connection: Connection, head: Head, archived: SessionArchive, counts: RestoredCounts, now: float
) -> None:
    _fill_head(head, archived, counts, now)
    save_head(connection, head)
    save_details(connection, head.id, archived.session.details)
    _insert_windows_and_summaries(connection, head, archived)


def _fill_head(head: Head, archived: SessionArchive, counts: RestoredCounts, now: float) -> None:
    session = archived.session
    head.owner = session.user or None
    head.next, head.last = counts.next, counts.last
    head.messages, head.tokens = counts.messages, counts.tokens
    head.expires_at = now + head.ttl if head.ttl else None
    head.last_active_at = session.last_active_at


def _insert_windows_and_summaries(
    connection: Connection, head: Head, archived: SessionArchive
) -> None:
    connection.executemany(
        "INSERT INTO windows (session, profile, turn, seq) VALUES (?, ?, ?, ?)",
        [(head.id, name, at.turn, at.seq) for name, at in archived.session.windows.items()],
    )
    connection.executemany(
        "INSERT INTO summaries (session, version, data) VALUES (?, ?, ?)",
        [(head.id, x.version, codec.encode(x)) for x in archived.summaries[:MAX_VERSIONS]],
    )
