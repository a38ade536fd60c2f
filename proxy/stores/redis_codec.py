"""Keys and arguments of the scripts, and what their replies mean.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from proxy.memory.archive import Message, Session
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Ask,
    Commit,
    Draft,
    Entry,
    Exchange,
    Outcome,
    Position,
    SessionKey,
    Snapshot,
)
from proxy.memory.summary import Summary
from proxy.stores import codec
from proxy.stores.places import Place, Span, is_choice, locate, locate_all, shown, sized
from proxy.stores.redis_work_codec import due_arguments

PARTS = (b"meta", b"cards", b"log", b"active", b"exchanges", b"keys", b"choices", b"summaries")
"""The keys of a session, in the order in which every script gets them."""

ANY_LIST = b"mp:{*}:sessions"
"""What the keys of all lists of sessions look like."""

OUTCOMES: Mapping[bytes, Outcome] = {
    b"recorded": "recorded",
    b"duplicate": "duplicate",
    b"stale": "stale",
    b"outrun": "outrun",
    b"foreign": "foreign",
}

Argument = bytes | str | int | float


def session_keys(key: SessionKey) -> list[bytes]:
    """All keys of a session: one hash tag, so one slot, and no two sessions share it.

    Percent-encoding leaves neither braces nor colons in a tenant or a session id.
    """
    tag = f"mp:{{{quote(key.tenant, safe='')}:{quote(key.session, safe='')}}}:".encode()
    return [tag + part for part in PARTS]


def list_keys(tenant: str, user: str | None = None) -> list[bytes]:
    """The list of a tenant's sessions, or of one user's, and when their entries expire."""
    who = quote(tenant, safe="")
    if user is not None:
        who = f"{who}:{quote(user, safe='')}"
    tag = f"mp:{{{who}}}:".encode()
    return [tag + b"sessions", tag + b"expiries"]


def read_tenant(key: bytes) -> str | None:
    """Whose list of all sessions a key is of; None for that of a user."""
    who = key.decode().removeprefix("mp:{").removesuffix("}:sessions")
    return None if ":" in who else unquote(who)


def load_arguments(ask: Ask, now: float) -> list[Argument]:
    return [
        ask.profile,
        int(ask.whole),
        "" if ask.max_messages is None else ask.max_messages,
        "" if ask.max_tokens is None else ask.max_tokens,
        ask.idempotency_key or "",
        repr(now - IDEMPOTENCY_SECONDS),
        "" if ask.uncovered is None else ask.uncovered,
    ]


def read_snapshot(reply: Sequence[Any], ask: Ask) -> Snapshot:
    if not reply:
        return Snapshot()
    owner, system, system_tokens, messages, tokens, start, last, last_usage = reply[:8]
    attempt, attempt_usage, joined, begin, others, bodies, choices = reply[8:15]
    summary, changes, stalled = reply[15:]
    log = codec.decode_log(joined)
    window = _window(log, int(begin), others) if ask.whole else log
    return Snapshot(
        exists=True,
        owner=owner.decode() if owner else None,
        system=system,
        system_tokens=int(system_tokens or 0),
        start=Position(*map(int, start.split())) if start else None,
        log=log,
        whole=ask.whole,
        bodies={entry.card.id: body for entry, body in zip(window, bodies, strict=True)},
        alternates=codec.alternates(codec.decode_log(choices)) if choices else {},
        last=codec.decode_exchange(last, last_usage),
        attempt=codec.decode_exchange(attempt, attempt_usage) if attempt else None,
        messages=int(messages),
        tokens=int(tokens),
        summary=read_version(summary) if summary else None,
        changes=int(changes or 0),
        stalled=bool(stalled),
    )


def _window(log: Sequence[Entry], begin: int, others: bytes) -> list[Entry]:
    turns = set(map(int, others.split(b","))) if others else set()
    return [entry for entry in log if shown(entry.position.turn, begin, turns)]


def read_passages(
    sessions: Sequence[str], replies: Sequence[Sequence[bytes]]
) -> dict[tuple[str, int], Message]:
    return codec.passages(
        [
            (session, entry, body)
            for session, reply in zip(sessions, replies, strict=True)
            for entry, body in zip(reply[::2], reply[1::2], strict=True)
        ]
    )


def commit_arguments(key: SessionKey, commit: Commit, now: float) -> list[Argument]:
    exchange = sized(commit)
    superseded = _flat(locate_all(commit.superseded))
    activated = _flat(locate_all(commit.activated))
    arguments: list[Argument] = [
        exchange.id,
        commit.user or "",
        commit.idempotency_key or "",
        repr(exchange.started_at),
        repr(exchange.created_at),
        codec.encode(exchange),
        commit.reserved,
        commit.system or b"",
        commit.system_tokens,
        exchange.profile,
        *_window_arguments(commit),
        "" if commit.ttl is None else commit.ttl,
        repr(exchange.created_at - IDEMPOTENCY_SECONDS),
        repr(now),
        key.session,
        len(commit.drafts),
        len(superseded) // 2,
        len(activated) // 2,
        len(commit.due),
    ]
    for draft in commit.drafts:
        arguments += _draft_arguments(draft)
    return arguments + superseded + activated + due_arguments(key, commit.due)


def amend_arguments(amendment: Amendment) -> list[Argument]:
    arguments: list[Argument] = [amendment.exchange, bytes(amendment.usage or b"")]
    for draft in amendment.drafts:
        place = locate(draft.card.id)
        if place and place.exchange == amendment.exchange:
            arguments += [place.number, *_draft_arguments(draft)]
    return arguments


def _window_arguments(commit: Commit) -> tuple[Argument, ...]:
    start = locate(commit.window.start) if commit.window else None
    if commit.window is None or start is None:
        return ("", "", "", "")
    return (start.exchange, start.number, commit.window.profile, int(commit.window.anew))


def _draft_arguments(draft: Draft) -> tuple[Argument, ...]:
    card = draft.card
    turn = None if draft.turn == card.id else locate(draft.turn)
    return (
        codec.encode(card),
        card.tokens,
        int(draft.state == "active"),
        int(is_choice(card)),
        turn.exchange if turn else "",
        turn.number if turn else "",
        draft.body,
        int(draft.wire is not None),
        draft.wire or b"",
    )


def _flat(places: Sequence[Place]) -> list[Argument]:
    return [part for place in places for part in place]


@dataclass(frozen=True, slots=True)
class Stored:
    """An exchange as it lies in Redis."""

    span: Span
    record: bytes


def read_stored(value: bytes) -> Stored:
    first, size, _, record = value.split(b" ", 3)
    return Stored(Span(int(first), int(size)), record)


def read_exchange(value: bytes, usage: bytes | None) -> Exchange:
    return codec.decode_exchange(read_stored(value).record, usage)


def pack_version(summary: Summary) -> bytes:
    """A version of a summary, and in front of it what the scripts want to know."""
    facts = (summary.version, *summary.until, summary.seen)
    return b"%d %d %d %d %b" % (*facts, codec.encode(summary))


def read_version(packed: bytes) -> Summary:
    return codec.decode_summary(packed.split(b" ", 4)[4])


def field_of(seq: int) -> bytes:
    """The hash field of a message."""
    return b"%010d" % seq


def read_session(name: str, fields: Sequence[bytes]) -> Session | None:
    """A session from the reply to HGETALL; no fields, no session."""
    meta: Mapping[bytes, bytes] = dict(zip(fields[::2], fields[1::2], strict=True))
    if b"next" not in meta:
        return None
    start = meta.get(b"window:" + meta[b"profile"], b"0 0")
    owner = meta.get(b"owner")
    return Session(
        id=name,
        user=owner.decode() if owner else None,
        messages=int(meta[b"messages"]),
        tokens=int(meta[b"tokens"]),
        system=meta.get(b"system"),
        window_start=int(start.split()[1]),
        ttl=int(meta[b"ttl"]),
        created_at=float(meta[b"created"]),
        last_active_at=float(meta[b"active_at"]),
        summary=read_version(meta[b"summary"]) if b"summary" in meta else None,
    )
