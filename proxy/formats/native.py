"""The native form of a stored message: its content in the API that it came from.

A stored message is a chat message, whatever API it came from.  Its member ``native`` has the form
in that API, ``{"api": NAME, "parts": [...]}``: content blocks or items, verbatim and in order, with
signatures, encrypted reasoning and types that chat completions lack.  It is ignored when messages
are compared, and sent upstream only in requests of the same API.  ``named`` maps the ids of items
that are not among the parts to substitutes, which are sent if a request refers to them; null is
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.native import FIELD, MARK

T = TypeVar("T")

OMITTED = b"null"
"""The substitute (JSON) for an item that is left out."""

_NAMED = "named"
_NAMES = b'"named"'


class _Native(msgspec.Struct):
    """The members that are read most."""

    api: str
    parts: list[msgspec.Raw]


class _Stored(msgspec.Struct):
    native: _Native


_stored = msgspec.json.Decoder(_Stored)


class AnswerId(NamedTuple):
    """The id that an upstream gave an answer, and whether it has stored the answer."""

    id: str
    stored: bool


def with_native(
    message: bytes,
    api: str,
    parts: Sequence[bytes],
    answer: AnswerId | None = None,
    frame: bytes = b"",
    substitutes: Mapping[str, bytes] | None = None,
) -> bytes:
    """The chat message (a JSON object) with its parts (JSON) in this API.

    ``frame`` is the answer object without its parts (JSON), if the proxy emulates state.
    ``substitutes`` is JSON by item id: see the module.
    """
    native = {"api": jsontext.encode(api), "parts": jsontext.join_items(parts)}
    if answer is not None:
        native["answer"] = jsontext.encode(answer)
    if frame:
        native["frame"] = frame
    if substitutes:
        native[_NAMED] = jsontext.join_fields(dict(substitutes))
    return jsontext.join_fields({**jsontext.fields(message), FIELD: jsontext.join_fields(native)})


def native_of(message: bytes, api: str) -> tuple[bytes, ...] | None:
    """The parts (JSON) of a stored message in this API; None if it has none."""
    if MARK not in message:
        return None
    try:
        native = _stored.decode(message).native
        parts = tuple(map(bytes, native.parts)) if native.api == api else None
    except jsontext.UNREADABLE:  # a lone surrogate, or a client's own field of this name
        parts = _member(message, api, "parts", lambda raw: tuple(jsontext.items(raw)))
    return parts if parts is not None and all(part.startswith(b"{") for part in parts) else None


def substitutes_in(message: bytes, api: str) -> Mapping[str, bytes]:
    """The substitutes (JSON by item id) for items that are not among the message's parts."""
    named = _member(message, api, _NAMED, jsontext.fields) if _NAMES in message else None
    return {name: raw for name, raw in (named or {}).items() if raw[:1] == b"{" or raw == OMITTED}


def has_no_native(messages: Iterable[bytes]) -> bool:
    """Whether none of these messages has a native form, so that they can be sent as they are."""
    # One search of all, backwards: without a match ``rfind`` takes a third of the time of ``find``.
    return b"".join(messages).rfind(MARK) < 0


def answer_id_of(message: bytes, api: str) -> AnswerId | None:
    """The id of the answer of this API that a stored message came from; None without one."""
    match _member(message, api, "answer", jsontext.value):
        case [str(id), bool(stored)]:
            return AnswerId(id, stored)
    return None


def frame_of(message: bytes, api: str) -> dict[str, bytes] | None:
    """The other fields (JSON by name) of an answer object that the proxy keeps."""
    return _member(message, api, "frame", jsontext.fields)


def without_answer_id(message: bytes) -> bytes:
    """The message without the answer's id and frame, so that it cannot be fetched by id."""
    fields = jsontext.fields(message)
    native = jsontext.fields(fields[FIELD])
    kept = {key: raw for key, raw in native.items() if key not in ("answer", "frame")}
    return jsontext.join_fields({**fields, FIELD: jsontext.join_fields(kept)})


def _member(message: bytes, api: str, name: str, read: Callable[[bytes], T]) -> T | None:
    """A member of a stored message's native form in this API, read with ``read``; None without."""
    if MARK not in message:
        return None
    try:
        native = jsontext.fields(jsontext.fields(message)[FIELD])
        return read(native[name]) if jsontext.value(native["api"]) == api else None
    except (KeyError, *jsontext.UNREADABLE):  # a client's own field of this name
        return None
