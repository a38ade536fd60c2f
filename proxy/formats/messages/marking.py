"""Adds cache marks to a request of the Messages API.  Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.chat import jsontext
from proxy.formats.breakpoints import (
    CACHE_CONTROL,
    CacheMark,
    MessageKind,
    marks_left,
    with_mark,
    with_marks,
)
from proxy.formats.messages.part import USER

_KINDS = ("image", "document", "search_result", "tool_use", "tool_result")
"""Types of blocks, beside texts, that accept a mark.  Thinking does not."""


def marked_body(body: bytes) -> bytes:
    """The body with marks; the system text is treated as the first message."""
    fields = jsontext.fields(body)
    system = fields.get("system", b"null")
    messages = [_system(system), *jsontext.items(fields["messages"])]
    marked = with_marks(messages, _kind, _add_mark, CACHE_CONTROL, marks_left(CACHE_CONTROL, body))
    if marked == messages:
        return body
    if marked[0] != messages[0]:
        fields["system"] = jsontext.fields(marked[0])["content"]
    return jsontext.join_fields({**fields, "messages": jsontext.join_items(marked[1:])})


def _system(content: bytes) -> bytes:
    return jsontext.join_fields({"role": b'"system"', "content": content})


class _Block(msgspec.Struct):
    type: Any = None


class _Message(msgspec.Struct):
    role: Any = None
    content: str | list[_Block] = ""


_decode = msgspec.json.Decoder(_Message).decode


def _kind(raw: bytes) -> MessageKind:
    try:
        message = _decode(raw)
    except jsontext.UNREADABLE:  # a lone surrogate, or another shape
        return "other"
    if message.role == "system":
        return "system"
    if message.role != USER:
        return "other"
    blocks = message.content
    if isinstance(blocks, list) and all(block.type == "tool_result" for block in blocks):
        return "result"
    return "question"


def _add_mark(raw: bytes, mark: CacheMark) -> bytes | None:
    return with_mark(raw, "content", mark, "text", _KINDS)
