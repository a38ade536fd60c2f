"""How the values of history lie in Redis, and how they are read from there.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.memory.archive import Details, Line, Message, Placed, Session
from proxy.memory.model import Exchange, Position, State
from proxy.memory.summary import Summary
from proxy.stores import codec
from proxy.stores.places import Span

WINDOW = b"window:"
"""What the fields of a session's meta begin with that hold windows; the profile follows."""


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


def pack_exchange(first: int, exchange: Exchange) -> bytes:
    started = repr(exchange.started_at).encode()
    return b"%d %d %b %b" % (first, exchange.size, started, codec.encode(exchange))


def pack_version(summary: Summary) -> bytes:
    """A version of a summary, and in front of it what the scripts want to know."""
    facts = (summary.version, *summary.until, summary.seen)
    return b"%d %d %d %d %b" % (*facts, codec.encode(summary))


def read_version(packed: bytes) -> Summary:
    return codec.decode_summary(packed.split(b" ", 4)[4])


def read_position(value: bytes) -> Position:
    turn, seq = value.split()
    return Position(int(turn), int(seq))


def read_session(name: str, fields: Sequence[bytes]) -> Session | None:
    """A session from the reply to HGETALL; no fields, no session."""
    meta: Mapping[bytes, bytes] = dict(zip(fields[::2], fields[1::2], strict=True))
    if b"next" not in meta:
        return None
    windows = {
        field.removeprefix(WINDOW).decode(): read_position(value)
        for field, value in meta.items()
        if field.startswith(WINDOW)
    }
    last = _text(meta.get(b"last"))
    start = windows.get(meta[b"profile"].decode()) if last else None
    return Session(
        id=name,
        user=_text(meta.get(b"owner")),
        messages=int(meta[b"messages"]),
        tokens=int(meta[b"tokens"]),
        window_start=start.seq if start else 0,
        created_at=float(meta[b"created"]),
        last_active_at=float(meta[b"active_at"]),
        details=_details(meta),
        summary=read_version(meta[b"summary"]) if b"summary" in meta else None,
        end=int(meta[b"next"]) - 1,
        last=last,
        windows=windows,
    )


def _details(meta: Mapping[bytes, bytes]) -> Details:
    return Details(
        title=_text(meta.get(b"title")),
        metadata=meta.get(b"metadata", b"{}"),
        ttl=int(meta[b"ttl"]),
        system=meta.get(b"system"),
        system_tokens=int(meta.get(b"system_tokens", 0)),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def read_messages(joined: bytes, flags: bytes, wires: Sequence[bytes]) -> list[Message]:
    """A page from the reply to messages.lua."""
    return [
        Message(entry.position.seq, entry.card, _state(flag), wire)
        for entry, flag, wire in zip(codec.decode_log(joined), flags, wires, strict=True)
    ]


def read_lines(joined: bytes, flags: bytes, texts: Sequence[bytes]) -> list[Line]:
    """The same with all that is kept of each message."""
    rows = zip(codec.decode_log(joined), flags, texts[::2], texts[1::2], strict=True)
    return [
        Line(entry.position, entry.card, _state(flag), body, wire)
        for entry, flag, body, wire in rows
    ]


def _state(flag: int) -> State:
    return "active" if flag == ord("1") else "superseded"


def read_placed(flat: Sequence[Any]) -> list[Placed]:
    """Exchanges from the reply to exchanges.lua: first, record, usage and indexes, in turns."""
    found = []
    for first, record, usage, indexes in zip(*(flat[n::4] for n in range(4)), strict=True):
        exchange = codec.decode_exchange(record, usage)
        ids = tuple(f"{exchange.id}.{index}" for index in indexes.decode().split(","))
        found.append(Placed(first, exchange, ids))
    return found
