"""Calls that are the answer: what a model says when a request makes it call a tool.

Structured output is asked for so: a tool is forced on the model, its arguments are the answer, and
nobody answers the call.  In a later prompt such a call stands as the text that it is, which every
upstream takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from proxy.chat import jsontext
from proxy.chat.cachemarks import may_have_marks, without_marks
from proxy.chat.message import text_of


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


def in_words(raw: bytes) -> bytes:
    """The answer that calls are, as a message of text: their arguments, a line each."""
    try:
        fields = jsontext.decode(raw)
    except jsontext.UNREADABLE:
        return raw
    if not isinstance(fields, dict):
        return raw
    lines = [text_of(raw), *_arguments(fields)]
    said = {"role": "assistant", "content": "\n".join(line for line in lines if line.strip())}
    return jsontext.encode(said)


def sent_again(raw: bytes, told: bool) -> bytes:
    """What a later request carries of a stored message; ``told``: its calls in words.

    Older releases have stored cache marks.
    """
    kept = without_marks(raw)
    return in_words(kept) if told else kept


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
