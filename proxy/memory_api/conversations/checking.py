"""Validates messages that are written or imported over the API.  Pure.

Later requests of the session contain them, so upstreams must accept them.  Unknown fields and types
of parts are accepted, since vendors have their own.

Raises ProxyError 400 with ``param`` naming the invalid field.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat.jsontext import UNREADABLE, decode
from proxy.memory_api.fields import invalid

_INSTEAD: Mapping[str, type] = {
    "tool_calls": list,
    "function_call": dict,
    "refusal": str,
    "audio": dict,
}
"""Fields that an assistant's message may have instead of content."""


def check_message(raw: bytes, name: str) -> None:
    """``raw`` is the JSON of an object, ``name`` its place in the request's body."""
    message = _object(raw, name)
    content, calls = message.get("content"), message.get("tool_calls")
    if content is not None or not _may_lack_content(message):
        check_content(content, f"{name}.content")
    if calls is not None:
        _check_calls(calls, f"{name}.tool_calls")


def check_content(content: object, name: str) -> None:
    """Content must be text, or a list of parts in which text parts have a text."""
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise invalid(f"{name} must be a string or a list of one or more parts.", name)
    for number, part in enumerate(content):
        _check_part(part, f"{name}[{number}]")


def _check_part(part: object, name: str) -> None:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise invalid(f"{name} must be an object with a type.", name)
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        raise invalid(f"{name}.text must be a string.", f"{name}.text")


def _check_calls(calls: object, name: str) -> None:
    if not isinstance(calls, list):  # an empty one is what some servers answer with
        raise invalid(f"{name} must be a list of calls.", name)
    for number, call in enumerate(calls):
        if not _is_call(call):
            sentence = "must be an object with an id, and a function with a name and arguments."
            raise invalid(f"{name}[{number}] {sentence}", f"{name}[{number}]")


def _is_call(call: object) -> bool:
    if not isinstance(call, dict) or not isinstance(call.get("id"), str):
        return False
    function = call.get("function")
    return call.get("type") == "custom" or (
        isinstance(function, dict)
        and isinstance(function.get("name"), str)
        and isinstance(function.get("arguments"), str)
    )


def _may_lack_content(message: Mapping[str, object]) -> bool:
    """Whether the message may be without content."""
    has_instead = any(isinstance(message.get(k), t) and message[k] for k, t in _INSTEAD.items())
    return has_instead and message.get("role") == "assistant"


def _object(raw: bytes, name: str) -> Mapping[str, object]:
    try:
        message = decode(raw)
    except UNREADABLE:
        raise invalid(f"{name} must be JSON that is not nested too deeply.", name) from None
    if not isinstance(message, dict):
        raise invalid(f"{name} must be an object.", name)
    return message
