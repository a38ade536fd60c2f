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

_DEMAND = re.compile(
    rb"missing\W{1,8}reasoning_content"
    rb"|reasoning_content\W{1,8}(?:\w{1,20} ){0,8}"
    rb"(?:(?:is|are) (?:missing|required)|must be (?:passed|sent|given|provided|included))",
    re.IGNORECASE,
)


def demands_reasoning(error: bytes) -> bool:
    """Whether an upstream's error demands the reasoning of earlier answers."""
    return _DEMAND.search(error) is not None


def refuses_reasoning(error: bytes) -> bool:
    """Whether the error to a request with reasoning refuses the field."""
    return FIELD.encode() in error and not demands_reasoning(error)


class _ReasoningFields(msgspec.Struct):
    """The fields of a message that are read here."""

    role: Any = None
    reasoning_content: msgspec.Raw = jsontext.NULL
    tool_calls: Any = None


_read = jsontext.struct_reader(_ReasoningFields)


def reasoning_in(message: bytes) -> bytes:
    """The reasoning (JSON) in an answer as received; ``NO_REASONING`` if it has none."""
    try:
        raw = bytes(_read(message).reasoning_content)
    except jsontext.UNREADABLE:
        return NO_REASONING
    return raw if raw.startswith(b'"') else NO_REASONING


def with_reasoning(body: bytes, reasoning_by_call: Mapping[str, bytes]) -> bytes:
    """A request's body with reasoning in all assistant messages that lack it.

    ``reasoning_by_call`` is the reasoning (JSON) before each call, by the call's id.  Slow for a
    large body: use a thread.
    """
    try:
        fields = jsontext.fields(body)
        messages = jsontext.items(fields["messages"])
        changed = [_with_reasoning(raw, reasoning_by_call) for raw in messages]
        fields["messages"] = jsontext.join_items(changed)
    except (KeyError, *jsontext.UNREADABLE):  # left to the upstream to refuse
        return body
    return jsontext.join_fields(fields)


def _with_reasoning(raw: bytes, reasoning_by_call: Mapping[str, bytes]) -> bytes:
    message = _read(raw)
    if message.role != "assistant" or bytes(message.reasoning_content) != b"null":
        return raw
    found = (reasoning_by_call.get(id) for id in _call_ids(message.tool_calls))
    reasoning = next(filter(None, found), NO_REASONING)
    return jsontext.join_fields({**jsontext.fields(raw), FIELD: reasoning})


def _call_ids(calls: object) -> list[str]:
    ids = [call.get("id") for call in jsontext.objects_in(calls)]
    return [id for id in ids if isinstance(id, str)]
