"""The reasoning before tool calls, which is sent back to upstreams that demand it.  Pure.

DeepSeek and similar upstreams refuse a request in which an assistant message with tool calls lacks
``reasoning_content``; others refuse the field, so it is sent only after an upstream has demanded
it.  "" is accepted for calls without reasoning.  Some demand it in messages without calls as well,
and the others ignore it there.

https://api-docs.deepseek.com/guides/thinking_mode
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from proxy.chat import jsontext

FIELD = "reasoning_content"

NO_REASONING = b'""'
"""The JSON of unknown reasoning."""

_WANTED = re.compile(
    rb"missing\W{1,8}reasoning_content"
    rb"|reasoning_content\W{1,8}(?:\w{1,20} ){0,8}"
    rb"(?:(?:is|are) (?:missing|required)|must be (?:passed|sent|given|provided|included))",
    re.IGNORECASE,
)


def demands_reasoning(error: bytes) -> bool:
    """Whether an upstream's error demands the reasoning of earlier answers."""
    return _WANTED.search(error) is not None


def refuses_reasoning(error: bytes) -> bool:
    """Whether the error to a request with reasoning refuses the field."""
    return FIELD.encode() in error and not demands_reasoning(error)


class _Thinking(msgspec.Struct):
    """The fields of a message that are read here."""

    role: Any = None
    reasoning_content: msgspec.Raw = jsontext.NULL
    tool_calls: Any = None


_thinking = msgspec.json.Decoder(_Thinking)


def reasoning_in(message: bytes) -> bytes:
    """The reasoning (JSON) in an answer as received; ``NO_REASONING`` if it has none."""
    try:
        raw = bytes(_read(message).reasoning_content)
    except jsontext.UNREADABLE:
        return NO_REASONING
    return raw if raw.startswith(b'"') else NO_REASONING


def with_reasoning(body: bytes, known: Mapping[str, bytes]) -> bytes:
    """A request's body with reasoning in all assistant messages that lack it.

    ``known`` is reasoning (JSON) by the ids of the calls that followed it.  Slow for a large body.
    """
    try:
        fields = jsontext.fields(body)
        said = jsontext.items(fields["messages"])
        fields["messages"] = jsontext.join_items([_with_thoughts(raw, known) for raw in said])
    except (KeyError, *jsontext.UNREADABLE):  # left to the upstream to refuse
        return body
    return jsontext.join_fields(fields)


def _with_thoughts(raw: bytes, known: Mapping[str, bytes]) -> bytes:
    told = _read(raw)
    if told.role != "assistant" or bytes(told.reasoning_content) != b"null":
        return raw
    thoughts = (known[id] for id in _ids(told.tool_calls) if id in known)
    return jsontext.join_fields({**jsontext.fields(raw), FIELD: next(thoughts, NO_REASONING)})


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
