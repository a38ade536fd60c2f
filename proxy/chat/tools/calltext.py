"""Calls that nobody answers, as the text that a later prompt has of them: every upstream takes it.

Of most that is what the model has said beside them.  Structured output is asked for by a call: a
tool is forced on the model, and its arguments are the answer; they stand there too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Literal

from proxy.chat import jsontext
from proxy.chat.cachemarks import may_have_marks, without_marks
from proxy.chat.message import text_of

Told = Literal["whole", "words", "arguments"]
"""A message as it is, its words without its calls, or its words and what its calls are given."""


def forces_calls(choice: object, function_call: object = None) -> bool:
    """Does a request with this ``tool_choice`` (or legacy ``function_call``) demand calls?"""
    if isinstance(function_call, dict):
        return True
    if not isinstance(choice, dict):
        return choice in ("required", "any")
    allowed = choice.get("allowed_tools")
    if choice.get("type") == "allowed_tools":
        return isinstance(allowed, dict) and allowed.get("mode") == "required"
    return choice.get("type") in ("function", "custom", "any", "tool")


def words_alone(text: str) -> bytes:
    """What is sent of an answer with calls that nobody has answered: this text."""
    return jsontext.encode({"role": "assistant", "content": text})


def tokens_of_words(text: str, calls: Collection[str], count: Callable[[bytes], int]) -> int:
    """Tokens of the words of a message with calls, where these are left out; 0 for any other."""
    return count(words_alone(text)) if calls and text.strip() else 0


def in_words(raw: bytes) -> bytes:
    """The answer that calls are, as a message of text: their arguments, a line each."""
    try:
        fields = jsontext.decode(raw)
    except jsontext.UNREADABLE:
        return raw
    if not isinstance(fields, dict):
        return raw
    lines = [text_of(raw), *_arguments(fields)]
    return words_alone("\n".join(line for line in lines if line.strip()))


def sent_again(raw: bytes, told: Told) -> bytes:
    """What a later request carries of a stored message.

    Older releases have stored cache marks.
    """
    if told == "words":
        return words_alone(text_of(raw))
    kept = without_marks(raw)
    return in_words(kept) if told == "arguments" else kept


def none_marked(raws: Iterable[bytes]) -> bool:
    """Are these stored messages sent again as they are?  One look at all of them."""
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
