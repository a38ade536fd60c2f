"""Keys and arguments of the scripts, and what their replies mean.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proxy.memory.archive import Message
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Ask,
    Commit,
    Draft,
    Outcome,
    SessionKey,
)
from proxy.stores import codec
from proxy.stores.places import Place, is_choice, locate, locate_all, sized
from proxy.stores.redis_work_codec import due_arguments

OUTCOMES: Mapping[bytes, Outcome] = {
    b"recorded": "recorded",
    b"duplicate": "duplicate",
    b"stale": "stale",
    b"outrun": "outrun",
    b"foreign": "foreign",
    b"erased": "erased",
}

Argument = bytes | str | int | float


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


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of erasures when an exchange is committed.

    ``marks`` keys of marks are given to the script; ``mark`` is the latest that was looked at
    before, None where none was.  Among them is that of ``person``, "" for nobody's.
    """

    marks: int
    mark: float | None = None
    person: str = ""


def commit_arguments(key: SessionKey, commit: Commit, known: Known, now: float) -> list[Argument]:
    exchange = sized(commit)
    superseded = flat(locate_all(commit.superseded))
    activated = flat(locate_all(commit.activated))
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
        commit.ttl,
        repr(exchange.created_at - IDEMPOTENCY_SECONDS),
        repr(now),
        key.session,
        len(commit.drafts),
        len(superseded) // 2,
        len(activated) // 2,
        len(commit.due),
        known.marks,
        "" if known.mark is None else repr(known.mark),
        known.person,
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


def flat(places: Sequence[Place]) -> list[Argument]:
    return [part for place in places for part in place]
