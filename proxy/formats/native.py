"""What an API says of a message beyond chat completions, kept with the stored message.

A stored message is a chat message, whichever API it came by.  Its member ``native`` holds what the
API itself said, ``{"api": NAME, "parts": [...]}``: content blocks or items, verbatim and in order,
with signatures, encrypted reasoning and types that chat completions do not have.  It plays no part
in equality, and goes upstream only where the same API is spoken.  ``named`` are the names of what
came and is no part: a request that names it means this, or null, nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.native import FIELD, MARK

T = TypeVar("T")

NOTHING = b"null"
"""As a part: what is named is left out."""

_NAMED = "named"
_NAMES = b'"named"'


class _Native(msgspec.Struct):
    """What of it is read most."""

    api: str
    parts: list[msgspec.Raw]


class _Stored(msgspec.Struct):
    native: _Native


_stored = msgspec.json.Decoder(_Stored)


class NamedAnswer(NamedTuple):
    """What an upstream calls an answer, and whether it keeps it."""

    id: str
    stored: bool


def with_native(
    message: bytes,
    api: str,
    parts: Sequence[bytes],
    answer: NamedAnswer | None = None,
    frame: bytes = b"",
    named: Mapping[str, bytes] | None = None,
) -> bytes:
    """A chat message (a JSON object) with the JSON of its parts in this API.

    ``frame`` is the JSON of the answer around its parts, where the proxy keeps it; ``named`` has
    JSON by name.
    """
    native = {"api": jsontext.encode(api), "parts": jsontext.join_items(parts)}
    if answer is not None:
        native["answer"] = jsontext.encode(answer)
    if frame:
        native["frame"] = frame
    if named:
        native[_NAMED] = jsontext.join_fields(dict(named))
    return jsontext.join_fields({**jsontext.fields(message), FIELD: jsontext.join_fields(native)})


def native_of(message: bytes, api: str) -> tuple[bytes, ...] | None:
    """The JSON of a stored message's parts in this API; None where it has none."""
    if MARK not in message:
        return None
    try:
        native = _stored.decode(message).native
        told = native.api == api
        parts = tuple(map(bytes, native.parts)) if told else None
    except jsontext.UNREADABLE:  # half a surrogate pair somewhere, or a client's own field
        parts = _member(message, api, "parts", lambda raw: tuple(jsontext.items(raw)))
    return parts if parts is not None and all(part.startswith(b"{") for part in parts) else None


def named_in(message: bytes, api: str) -> Mapping[str, bytes]:
    """What names of this API stand for that are not a stored message's parts, as JSON."""
    named = _member(message, api, _NAMED, jsontext.fields) if _NAMES in message else None
    return {name: raw for name, raw in (named or {}).items() if raw[:1] == b"{" or raw == NOTHING}


def none_native(messages: Iterable[bytes]) -> bool:
    """May chat completions have these as they are?  One look at all of them, from their end: what
    is not there is found not to be there in a third of the time."""
    return b"".join(messages).rfind(MARK) < 0


def answer_of(message: bytes, api: str) -> NamedAnswer | None:
    """The answer of this API that a stored message was."""
    match _member(message, api, "answer", jsontext.value):
        case [str(id), bool(stored)]:
            return NamedAnswer(id, stored)
    return None


def frame_of(message: bytes, api: str) -> dict[str, bytes] | None:
    """What stood around the parts of an answer that the proxy keeps, by name."""
    return _member(message, api, "frame", jsontext.fields)


def without_answer(message: bytes) -> bytes:
    """A stored message that no name leads to any more; what it says stays."""
    fields = jsontext.fields(message)
    native = jsontext.fields(fields[FIELD])
    kept = {key: raw for key, raw in native.items() if key not in ("answer", "frame")}
    return jsontext.join_fields({**fields, FIELD: jsontext.join_fields(kept)})


def _member(message: bytes, api: str, name: str, read: Callable[[bytes], T]) -> T | None:
    """A member of what this API said of a stored message, None where there is none to read."""
    if MARK not in message:
        return None
    try:
        native = jsontext.fields(jsontext.fields(message)[FIELD])
        return read(native[name]) if jsontext.value(native["api"]) == api else None
    except (KeyError, *jsontext.UNREADABLE):  # some client's own field of this name
        return None
