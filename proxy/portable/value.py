"""JSON kept byte for byte inside a line.

Most is put in as it is.  What a line cannot hold so is put in as a string that has the JSON text:
what has line breaks, or white space around it, or half a surrogate pair, or is nested so deeply
that readers fail.  All values that are kept so are objects and lists, so that a string tells that
it is such a text.
"""

from __future__ import annotations

import re

import ijson
import msgspec

Kind = type[dict[str, object]] | type[list[object]]

NULL = msgspec.Raw(b"null")
"""No value at all."""

PIECE = 64 * 1024
"""Bytes that are read by one call."""

DEEPEST = 100
"""Brackets that open in a value up to which all readers are trusted with its nesting."""

_RAW = msgspec.json.Decoder(msgspec.Raw)
_TEXT = msgspec.json.Decoder(str)
_LONG_NUMBER = re.compile(rb"(\d{15})\d+")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def put(raw: bytes | None) -> msgspec.Raw:
    """JSON as a line has it."""
    if raw is None:
        return NULL
    if _fits(raw):
        return msgspec.Raw(raw)
    return msgspec.Raw(msgspec.json.encode(raw.decode("utf-8", "replace")))


def taken(raw: msgspec.Raw, kind: Kind) -> bytes:
    """The inverse of ``put``: the same bytes.  Raises ValueError for what is not of this kind."""
    found = bytes(raw)
    if found[:1] == b'"':
        found = _TEXT.decode(found).encode()
        _check(found)
    if found.lstrip()[:1] != (b"{" if kind is dict else b"["):
        raise ValueError(f"a value that is no {kind.__name__}")
    return found


def taken_or_none(raw: msgspec.Raw, kind: Kind) -> bytes | None:
    """As ``taken``; None for null."""
    return None if raw == NULL else taken(raw, kind)


def _fits(raw: bytes) -> bool:
    if raw[:1] not in (b"{", b"[") or raw[-1:] not in (b"}", b"]"):
        return False
    if b"\n" in raw or b"\r" in raw or raw.count(b"{") + raw.count(b"[") > DEEPEST:
        return False
    if not _SURROGATE.search(raw):
        return True
    try:
        _RAW.decode(raw)
    except ValueError:
        return False
    return True


def _check(text: bytes) -> None:
    """Raise ValueError unless it is JSON; a parser that does not recurse reads any nesting.

    It makes numbers, and fails where one is too large: their first digits tell as much.
    """
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events)
    try:
        for at in range(0, len(text), PIECE):
            parser.send(_LONG_NUMBER.sub(rb"\1", text[at : at + PIECE]))
            events.clear()
        parser.close()
    except ijson.JSONError:
        raise ValueError("a text that is not JSON") from None
