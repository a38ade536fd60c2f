"""What the proxy keeps for an upstream that keeps nothing, as this API's objects.  Pure.

A response is kept as its frame, the fields around what it says, beside the message that it was; its
output is the message's items, and its input the messages that were recorded with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from proxy.chat import jsontext
from proxy.chat.native import told_in_chat
from proxy.formats.native import native_of
from proxy.formats.responses.chat import items_of
from proxy.formats.responses.items import API, MESSAGE, PREFIXES, read_item

MAX_FRAME = 4096
"""Bytes of a frame; of a larger one the longest fields, tools and instructions mostly, are left
out."""

_LEFT_OUT = ("output", "usage", "input", "input_messages", "output_messages")
"""Fields that are kept as such, and what some upstreams repeat: memory is in it."""

_UNDER_WAY = (b'"in_progress"', b'"queued"')


class KeptItem(NamedTuple):
    """An item of a stored message: its id, the message's, and its JSON."""

    id: str
    message: str
    raw: bytes


def frame_around(raw: bytes) -> bytes:
    """What is kept of a response (JSON) beside its output: its fields, as far as there is room."""
    try:
        fields = jsontext.fields(raw)
    except jsontext.UNREADABLE:
        return b""
    frame = {key: value for key, value in fields.items() if key not in _LEFT_OUT}
    size = sum(len(key) + len(value) + 4 for key, value in frame.items())
    for key in sorted(frame, key=lambda key: len(frame[key]), reverse=True):
        if size <= MAX_FRAME:
            break
        size -= len(key) + len(frame.pop(key)) + 4
    return jsontext.join_fields(frame)


def response_object(
    frame: Mapping[str, bytes], message: bytes, usage: bytes | None, answer: str
) -> bytes:
    """A response again: its frame, with the output that the message (JSON) was."""
    known = {"tools": b"[]", **frame}  # clients count on them, and there was not always room
    said = {"output": jsontext.join_items(native_of(message, API) or ())}
    always = {"id": jsontext.encode(answer), "object": b'"response"'}
    if frame.get("status") in _UNDER_WAY:  # it was cut off
        always["status"] = b'"incomplete"'
    return jsontext.join_fields({**known, **always, **said, "usage": usage or b"null"})


def items_in(message: str, body: bytes) -> Iterator[KeptItem]:
    """The items of a stored message, by its id and JSON.  Those without an id get one."""
    for number, raw in enumerate(_items(body)):
        item = read_item(raw)
        if item is None:
            continue
        if item.id:
            yield KeptItem(item.id, message, raw)
            continue
        exchange, _, index = message.partition("_")[2].rpartition(".")
        id = f"{PREFIXES.get(item.kind, 'item')}_{exchange}_{index}_{number}"
        yield KeptItem(id, message, _with_id(raw, item.kind, id))


def list_object(found: Sequence[KeptItem], *, more: bool) -> bytes:
    """A page of items."""
    first, last = (found[0].id, found[-1].id) if found else (None, None)
    return jsontext.join_fields(
        {
            "object": b'"list"',
            "data": jsontext.join_items([item.raw for item in found]),
            "first_id": jsontext.encode(first),
            "last_id": jsontext.encode(last),
            "has_more": jsontext.encode(more),
        }
    )


def _items(body: bytes) -> Iterable[bytes]:
    """Those that it came as; of a chat message those that say the same."""
    parts = native_of(body, API)
    if parts:
        return parts
    return items_of(told_in_chat(body), {})


def _with_id(raw: bytes, kind: str, id: str) -> bytes:
    """As clients read an item: what was said shortly is said with type and parts."""
    fields = jsontext.fields(raw)
    if kind == MESSAGE:
        fields = {**fields, "type": b'"message"', "status": b'"completed"'}
        fields["content"] = _parts(fields)
    return jsontext.join_fields({**fields, "id": jsontext.encode(id)})


def _parts(fields: Mapping[str, bytes]) -> bytes:
    """The content of a message as a list of parts."""
    content = fields.get("content", b'""')
    if not content.startswith(b'"'):
        return content
    if fields.get("role") == b'"assistant"':
        return b'[{"type":"output_text","annotations":[],"text":' + content + b"}]"
    return b'[{"type":"input_text","text":' + content + b"}]"
