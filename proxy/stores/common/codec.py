"""The stored form of values: JSON, by msgspec.  Pure; knows no back end.

An entry is stored as one JSON text that contains its position, so that a log of any length is
decoded in a single call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import cast

import msgspec

from proxy.memory.archive import Message
from proxy.memory.model import Card, Entry, Exchange, Summary
from proxy.stores.common.history import is_choice

_encoder = msgspec.json.Encoder()
_entries = msgspec.json.Decoder(tuple[Entry, ...])
_exchange = msgspec.json.Decoder(Exchange)
_summary = msgspec.json.Decoder(Summary)

_TEXTS = frozenset((bytes, type(None)))

BROKEN_OFF = b'"incomplete":true'
"""In the JSON of an exchange that was broken off, and hardly in any other."""

encode = _encoder.encode
decode_summary = _summary.decode


def encode_entry(turn: int, seq: int, card: Card) -> bytes:
    return b"[[%d,%d],%b]" % (turn, seq, encode(card))


def decode_entries(entries: Iterable[bytes]) -> tuple[Entry, ...]:
    return decode_log(b",".join(entries))


def decode_pieces(pieces: Iterable[Sequence[bytes]]) -> tuple[Entry, ...]:
    """Entries of a log, decoded in pieces: a decoder holds the GIL."""
    return tuple(entry for piece in pieces for entry in decode_entries(piece))


def decode_log(joined: bytes) -> tuple[Entry, ...]:
    """Entries that are joined by commas already."""
    return _entries.decode(b"[" + joined + b"]")


def decode_exchange(record: bytes, usage: bytes | None) -> Exchange:
    """An exchange; ``usage`` is what an amendment added, if anything."""
    exchange = _exchange.decode(record)
    return msgspec.structs.replace(exchange, usage=usage) if usage else exchange


def text(value: object) -> bytes | None:
    """A stored text, checked: raises TypeError for any other type."""
    if value is None or isinstance(value, bytes):
        return value
    raise TypeError(f"{type(value).__name__} where a text was stored")


def texts(values: Sequence[object]) -> list[bytes | None]:
    """The same for many texts, fast if all are valid."""
    if _TEXTS.issuperset(map(type, values)):
        return cast("list[bytes | None]", list(values))
    return [text(value) for value in values]


def number(value: object) -> int:
    """A stored count, checked: raises TypeError for any other type."""
    if isinstance(value, int):
        return value
    raise TypeError(f"{type(value).__name__} where a number was stored")


def split_joined(joined: bytes, lengths: str) -> list[bytes | None]:
    """Split joined texts; ``lengths`` are their bytes, separated by commas."""
    ends = list(accumulate(map(int, lengths.split(",")))) if lengths else []
    return [joined[begin:end] for begin, end in pairwise((0, *ends))]


def passages(
    sessions: Sequence[str], entries: Sequence[Entry], bodies: Sequence[object]
) -> dict[tuple[str, int], Message]:
    """Active messages by session and seq; the three lists have an element for each."""
    return {
        (session, e.position.seq): Message(e.position.seq, e.card, "active", body or b"")
        for session, e, body in zip(sessions, entries, texts(bodies), strict=True)
    }


def alternates(entries: Sequence[Entry]) -> dict[str, tuple[Entry, ...]]:
    """The inactive replies among ``entries``, all of exchanges with several choices."""
    found: dict[str, tuple[Entry, ...]] = {}
    for entry in entries:
        if entry.card.origin == "response":
            exchange = entry.card.exchange
            found[exchange] = (*found.get(exchange, ()), entry)
    return found


def has_choices(cards: Iterable[Card]) -> bool:
    return any(is_choice(card) for card in cards)
