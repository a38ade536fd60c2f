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

Told = Literal["whole", "words", "arguments"]
"""How a message is sent: unchanged, its text without calls, or its text and its calls'
arguments."""


def forces_calls(choice: object, function_call: object = None) -> bool:
    """Whether this ``tool_choice`` (or legacy ``function_call``) demands calls."""
    if isinstance(function_call, dict):
        return True
    if not isinstance(choice, dict):
        return choice in ("required", "any")
    allowed = choice.get("allowed_tools")
    if choice.get("type") == "allowed_tools":
        return isinstance(allowed, dict) and allowed.get("mode") == "required"
    return choice.get("type") in ("function", "custom", "any", "tool")


def words_alone(text: str) -> bytes:
    """An assistant message (JSON) with this text only."""
    return jsontext.encode({"role": "assistant", "content": text})


def tokens_of_words(text: str, calls: Collection[str], count: Callable[[bytes], int]) -> int:
    """Tokens of a message with calls if these are omitted; 0 for a message without calls."""
    return count(words_alone(text)) if calls and text.strip() else 0


def in_words(raw: bytes) -> bytes:
    """The message as text: its own, then the arguments of each call on a line."""
    try:
        fields = jsontext.decode(raw)
    except jsontext.UNREADABLE:
        return raw
    if not isinstance(fields, dict):
        return raw
    lines = [text_of(raw), *_arguments(fields)]
    return words_alone("\n".join(line for line in lines if line.strip()))


def sent_again(raw: bytes, told: Told) -> bytes:
    """A stored message as a later request sends it, without cache marks that older releases have
    stored."""
    if told == "words":
        return words_alone(text_of(raw))
    kept = without_marks(raw)
    return in_words(kept) if told == "arguments" else kept


def none_marked(raws: Iterable[bytes]) -> bool:
    """Whether none of these stored messages has cache marks, tested at once."""
    return not may_have_marks(b"".join(raws))


def _arguments(fields: Mapping[str, object]) -> Iterator[str]:
    listed = fields.get("tool_calls")
    for call in listed if isinstance(listed, list) else []:
        if isinstance(call, dict):
            yield _said(call.get("function")) or _said(call.get("custom"))
    yield _said(fields.get("function_call"))


def _said(function: object) -> str:
    if not isinstance(function, dict):
        return ""
    said = function.get("arguments", function.get("input"))
    return said if isinstance(said, str) else ""
