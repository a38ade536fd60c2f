"""The field of a stored message with its form in another API: see ``proxy.formats.native``.

Chat completions only accept the id of a spoken answer back, and only for an hour, so its transcript
is kept in this field.
"""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat import jsontext

FIELD = "native"
MARK = b'"native"'

TEXTS = ("text", "message")
"""Types of native parts that are text."""

CALLS = ("function_call", "custom_tool_call", "tool_use")

REASONING = ("reasoning", "thinking", "redacted_thinking")
"""Types of reasoning parts, which models read only in the current turn: not sent back later."""

_COVERED = (*TEXTS, *CALLS, *REASONING)


def without_native(message: bytes) -> bytes:
    """A stored message without its native form, for chat completions."""
    if MARK not in message:
        return message
    try:
        fields = jsontext.fields(message)
    except jsontext.UNREADABLE:
        return message
    return jsontext.join_fields({k: v for k, v in fields.items() if k != FIELD})


def with_transcript(message: Mapping[str, object], transcript: str) -> dict[str, object]:
    """A spoken answer with its transcript as native form."""
    return {**message, FIELD: {"api": "chat", "parts": [{"type": "text", "text": transcript}]}}


def transcript_of(message: Mapping[str, object]) -> str:
    """The transcript of a spoken answer, stored or as a client sends it; "" for any other."""
    audio, native = message.get("audio"), message.get(FIELD)
    if not isinstance(audio, dict):
        return ""
    match native:
        case {"parts": [{"text": str(transcript)}]}:
            return jsontext.well_formed(transcript)
    return jsontext.text_in(audio.get("transcript"))


def as_chat_message(message: bytes) -> Mapping[str, object]:
    """A stored message (JSON) in chat form; the content of a spoken answer is its transcript."""
    fields = jsontext.decode(without_native(message))
    if not isinstance(fields, dict):
        return {}
    if fields.get("content") or not isinstance(fields.get("audio"), dict):
        return fields
    stored = jsontext.decode(message)
    return {**fields, "content": transcript_of(stored) if isinstance(stored, dict) else None}


def parts_beyond_chat(message: Mapping[str, object]) -> list[dict[str, object]]:
    """The native parts of a stored message; [] if its chat form has everything that a model reads
    of them."""
    native = message.get(FIELD)
    parts = native.get("parts") if isinstance(native, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return []
    is_answer = message.get("role") == "assistant"
    return [] if is_answer and all(part.get("type") in _COVERED for part in parts) else parts
