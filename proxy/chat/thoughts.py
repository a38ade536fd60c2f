"""What a model thought before it called tools, sent back where its upstream wants that.  Pure.

DeepSeek, and others like it, refuse a request whose answers with calls come without the member in
which they told their thoughts; nobody else takes it, so it is sent to those who have asked.  They
demand it, and take "", where a model called without thinking; in answers without calls some demand
it too, and the others pass over it.

https://api-docs.deepseek.com/guides/thinking_mode
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from proxy.chat import jsontext

FIELD = "reasoning_content"

NONE = b'""'
"""The JSON of thoughts that nobody knows."""

_WANTED = re.compile(
    rb"missing\W{1,8}reasoning_content"
    rb"|reasoning_content\W{1,8}(?:\w{1,20} ){0,8}"
    rb"(?:(?:is|are) (?:missing|required)|must be (?:passed|sent|given|provided|included))",
    re.IGNORECASE,
)


def wants_thoughts(error: bytes) -> bool:
    """Does an upstream's error say that it wants them back?"""
    return _WANTED.search(error) is not None


def refuses_thoughts(error: bytes) -> bool:
    """Does the error to a request with them say that it takes none?"""
    return FIELD.encode() in error and not wants_thoughts(error)


class _Thinking(msgspec.Struct):
    """What of a message tells whether it has them, and whose they are."""

    role: Any = None
    reasoning_content: msgspec.Raw = jsontext.NULL
    tool_calls: Any = None


_thinking = msgspec.json.Decoder(_Thinking)


def thoughts_in(message: bytes) -> bytes:
    """The JSON of the thoughts in an answer as it came; ``NONE`` where it has none."""
    try:
        raw = bytes(_read(message).reasoning_content)
    except jsontext.UNREADABLE:
        return NONE
    return raw if raw.startswith(b'"') else NONE


def with_thoughts(body: bytes, known: Mapping[str, bytes]) -> bytes:
    """A request's body with thoughts in all answers that lack them.

    ``known`` is their JSON by the ids of the calls that came of them.  Takes long for a large one.
    """
    try:
        fields = jsontext.fields(body)
        said = jsontext.items(fields["messages"])
        fields["messages"] = jsontext.join_items([_with_thoughts(raw, known) for raw in said])
    except (KeyError, *jsontext.UNREADABLE):  # the upstream's to refuse
        return body
    return jsontext.join_fields(fields)


def _with_thoughts(raw: bytes, known: Mapping[str, bytes]) -> bytes:
    told = _read(raw)
    if told.role != "assistant" or bytes(told.reasoning_content) != b"null":
        return raw
    thoughts = (known[id] for id in _ids(told.tool_calls) if id in known)
    return jsontext.join_fields({**jsontext.fields(raw), FIELD: next(thoughts, NONE)})


def _ids(calls: object) -> list[str]:
    listed = calls if isinstance(calls, list) else []
    ids = [call.get("id") for call in listed if isinstance(call, dict)]
    return [id for id in ids if isinstance(id, str)]


def _read(raw: bytes) -> _Thinking:
    """Raises UNREADABLE where it is no object."""
    try:
        return _thinking.decode(raw)
    except jsontext.UNREADABLE:  # half a surrogate pair, or no object
        fields = jsontext.fields(raw)
    told = msgspec.Raw(fields.get(FIELD, b"null"))
    role, calls = (jsontext.decode(fields.get(key, b"null")) for key in ("role", "tool_calls"))
    return _Thinking(role, told, calls)
