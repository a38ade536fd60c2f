"""The field of a stored message with its form in another API: see ``proxy.formats.native``."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat import jsontext

FIELD = "native"
MARK = b'"native"'

TEXTS = ("text", "message")
"""Types of native parts that are text."""

CALLS = ("function_call", "custom_tool_call", "tool_use")

THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
"""Types of reasoning parts, which models read only in the current turn: not sent back later."""

_COVERED = (*TEXTS, *CALLS, *THOUGHTS)


def without_native(message: bytes) -> bytes:
    """A stored message without its native form, for chat completions."""
    if MARK not in message:
        return message
    try:
        fields = jsontext.fields(message)
    except jsontext.UNREADABLE:
        return message
    return jsontext.join_fields({k: v for k, v in fields.items() if k != FIELD})


def beside(message: Mapping[str, object]) -> list[dict[str, object]]:
    """The native parts of a stored message; [] if its chat form has everything that a model reads
    of them."""
    native = message.get(FIELD)
    parts = native.get("parts") if isinstance(native, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return []
    said_by_model = message.get("role") == "assistant"
    return [] if said_by_model and all(part.get("type") in _COVERED for part in parts) else parts
