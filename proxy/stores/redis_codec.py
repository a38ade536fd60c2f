"""Keys and arguments of the scripts, and what their replies mean.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Ask,
    Commit,
    Draft,
    Exchange,
    Position,
    Session,
    SessionKey,
    Snapshot,
)
from proxy.stores import codec
from proxy.stores.places import Place, Span, is_choice, locate, locate_all, sized

PARTS = (b"meta", b"cards", b"log", b"active", b"exchanges", b"keys", b"choices")
"""The keys of a session, in the order in which every script gets them."""

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


def load_arguments(ask: Ask, now: float) -> list[Argument]:
    return [
        ask.profile,
        int(ask.whole),
        "" if ask.max_messages is None else ask.max_messages,
        "" if ask.max_tokens is None else ask.max_tokens,
        ask.idempotency_key or "",
        repr(now - IDEMPOTENCY_SECONDS),
    ]


def read_snapshot(reply: Sequence[Any], ask: Ask) -> Snapshot:
    if not reply:
        return Snapshot()
    owner, system, system_tokens, messages, tokens, start, last, last_usage = reply[:8]
    attempt, attempt_usage, joined, begin, others, bodies, choices = reply[8:]
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
    )
