"""Commits as tests write them: short, with ids that say what they are."""

from __future__ import annotations

from typing import Any

from proxy.memory.model import (
    Card,
    Commit,
    Draft,
    Exchange,
    Origin,
    Position,
    State,
    Summary,
    message_id,
)

TOKENS = 10
"""What every message of these tests weighs unless told otherwise."""


def card(exchange: str, index: int, role: str = "user", **fields: Any) -> Card:
    origin: Origin = "response" if role == "assistant" else "request"
    known: dict[str, Any] = {"tokens": TOKENS, "digest": f"{role}-{exchange}-{index}"}
    known |= {"origin": origin, "created_at": 1000.5}
    return Card(id=message_id(exchange, index), role=role, **(known | fields))


def draft(
    exchange: str,
    index: int,
    role: str = "user",
    *,
    turn: str | None = None,
    wire: bytes | None = None,
    state: State = "active",
    **fields: Any,
) -> Draft:
    """A message of an exchange; without ``turn`` it belongs to the turn of the first message."""
    body = b'{"role":"%b","content":"%b.%d"}' % (role.encode(), exchange.encode(), index)
    return Draft(
        card=card(exchange, index, role, **fields),
        turn=message_id(exchange, 0) if turn is None else turn,
        body=body,
        wire=wire,
        state=state,
    )


def exchange(id: str, at: float = 1000.0, **fields: Any) -> Exchange:
    known: dict[str, Any] = {"profile": "default", "started_at": at, "created_at": at}
    return Exchange(id=id, **(known | fields))


def record(id: str, *drafts: Draft, at: float = 1000.0, **fields: Any) -> Commit:
    """A commit of these drafts; fields of the exchange and of the commit by their names."""
    of_exchange = {
        name: fields.pop(name)
        for name in ("profile", "started_at", "usage", "model", "incomplete")
        if name in fields
    }
    return Commit(exchange=exchange(id, at, **of_exchange), drafts=drafts, **fields)


def chat(id: str, at: float = 1000.0, tokens: int = TOKENS, **fields: Any) -> Commit:
    """A question and its answer, a turn of its own."""
    question = draft(id, 0, tokens=tokens)
    answer = draft(id, 1, "assistant", tokens=tokens)
    return record(id, question, answer, at=at, **fields)


def summary(until: int, text: str = "in short", seen: int = 100) -> Summary:
    """A summary of all turns before the one that begins at seq ``until``."""
    return Summary(
        text=text, version=0, until=Position(until, until), seen=seen, covers_until=until - 1
    )
