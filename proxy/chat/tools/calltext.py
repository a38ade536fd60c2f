"""Replaces unanswered tool calls by text in later prompts, since upstreams refuse such calls.

Usually that is only the text beside the calls.  If the request forced a call, as for structured
output, the arguments are the answer and are included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal

from proxy.chat import jsontext
from proxy.chat.cachemarks import may_have_marks, without_marks
from proxy.chat.message import text_of

CallRendering = Literal["whole", "words", "arguments"]
"""How a message is sent: unchanged, its text without calls, or its text and its calls'
arguments."""


def forces_calls(choice: object, function_call: object = None) -> bool:
    """Whether this ``tool_choice`` (or legacy ``function_call``) demands calls."""
    if isinstance(function_call, dict):
        return True
    if not isinstance(choice, dict):
        return choice in ("required", "any")
    allowed_tools = choice.get("allowed_tools")
    if choice.get("type") == "allowed_tools":
        return isinstance(allowed_tools, dict) and allowed_tools.get("mode") == "required"
    return choice.get("type") in ("function", "custom", "any", "tool")


def text_message(text: str) -> bytes:
    """An assistant message (JSON) with this text only."""
    return jsontext.encode({"role": "assistant", "content": text})


def tokens_without_calls(text: str, calls: Collection[str], count: Callable[[bytes], int]) -> int:
    """Tokens of a message with calls if these are omitted; 0 for a message without calls."""
    return count(text_message(text)) if calls and text.strip() else 0


def calls_as_text(raw: bytes) -> bytes:
    """The message as text: its own, then the arguments of each call on a line."""
    try:
        fields = jsontext.decode(raw)
    except jsontext.UNREADABLE:
        return raw
    if not isinstance(fields, dict):
        return raw
    lines = [text_of(raw), *_arguments(fields)]
    return text_message("\n".join(line for line in lines if line.strip()))


def render_stored(raw: bytes, rendering: CallRendering) -> bytes:
    """A stored message as a later request sends it, without cache marks that older releases have
    stored."""
    if rendering == "words":
        return text_message(text_of(raw))
    unmarked = without_marks(raw)
    return calls_as_text(unmarked) if rendering == "arguments" else unmarked


def have_no_marks(raws: Iterable[bytes]) -> bool:
    """Whether none of these stored messages has cache marks, tested at once."""
    return not may_have_marks(b"".join(raws))


def _arguments(fields: Mapping[str, object]) -> Iterator[str]:
    for call in jsontext.objects_in(fields.get("tool_calls")):
        yield _call_input(call.get("function")) or _call_input(call.get("custom"))
    yield _call_input(fields.get("function_call"))


def _call_input(function: object) -> str:
    if not isinstance(function, dict):
        return ""
    value = function.get("arguments", function.get("input"))
    return value if isinstance(value, str) else ""
