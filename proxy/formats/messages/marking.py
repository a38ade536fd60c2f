"""Cache marks in a request of the Messages API.  Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.chat import jsontext
from proxy.formats.breakpoints import CACHE_CONTROL, Kind, Mark, room_for, with_mark, with_marks
from proxy.formats.messages.part import USER

_KINDS = ("image", "document", "search_result", "tool_use", "tool_result")
"""Blocks that take a mark, as texts do.  Thinking takes none."""


def marked_body(body: bytes) -> bytes:
    """A request's body with marks; the system text counts as the first of its messages."""
    fields = jsontext.fields(body)
    system = fields.get("system", b"null")
    messages = [_system(system), *jsontext.items(fields["messages"])]
    placed = with_marks(messages, _kind, _marked, CACHE_CONTROL, room_for(CACHE_CONTROL, body))
    if placed == messages:
        return body
    if placed[0] != messages[0]:
        fields["system"] = jsontext.fields(placed[0])["content"]
    return jsontext.join_fields({**fields, "messages": jsontext.join_items(placed[1:])})


def _system(content: bytes) -> bytes:
    return jsontext.join_fields({"role": b'"system"', "content": content})


class _Block(msgspec.Struct):
    type: Any = None


class _Message(msgspec.Struct):
    role: Any = None
    content: str | list[_Block] = ""


_decode = msgspec.json.Decoder(_Message).decode


def _kind(raw: bytes) -> Kind:
    try:
        message = _decode(raw)
    except jsontext.UNREADABLE:  # half a surrogate pair, or another shape
        return "other"
    if message.role == "system":
        return "system"
    if message.role != USER:
        return "other"
    blocks = message.content
    only = isinstance(blocks, list) and all(block.type == "tool_result" for block in blocks)
    return "result" if only else "asked"


def _marked(raw: bytes, mark: Mark) -> bytes | None:
    return with_mark(raw, "content", mark, "text", _KINDS)
