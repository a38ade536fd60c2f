"""The objects of this API that the proxy serves itself, for upstreams without state.  Pure.

A response is stored as its frame, which is all fields but its content, in the recorded message; its
output is the message's items, and its input the messages that were recorded with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from proxy.chat import jsontext
from proxy.chat.native import as_chat_message
from proxy.formats.native import native_of
from proxy.formats.responses.chat import items_from_chat
from proxy.formats.responses.items import API, MESSAGE, PREFIXES, read_item

MAX_FRAME = 4096
"""Bytes; of a larger frame the longest fields, mostly tools and instructions, are left out."""

_NOT_IN_FRAME = ("output", "usage", "input", "input_messages", "output_messages")
"""Fields that are stored elsewhere, and the input that some upstreams echo, with memory in it."""

_UNFINISHED = (b'"in_progress"', b'"queued"')


class StoredItem(NamedTuple):
    """An item of a stored message: its id, the message's id, and its JSON."""

    id: str
    message: str
    raw: bytes


def frame_of_response(raw: bytes) -> bytes:
    """The frame (JSON) of a response (JSON), at most ``MAX_FRAME`` bytes; b"" if unreadable."""
    try:
        fields = jsontext.fields(raw)
    except jsontext.UNREADABLE:
        return b""
    frame = {key: value for key, value in fields.items() if key not in _NOT_IN_FRAME}
    size = sum(len(key) + len(value) + 4 for key, value in frame.items())
    for key in sorted(frame, key=lambda key: len(frame[key]), reverse=True):
        if size <= MAX_FRAME:
            break
        size -= len(key) + len(frame.pop(key)) + 4
    return jsontext.join_fields(frame)


def response_object(
    frame: Mapping[str, bytes], message: bytes, usage: bytes | None, id: str
) -> bytes:
    """The response object from its frame, its stored message (JSON), its usage and its id."""
    fields = {
        "tools": b"[]",  # required by clients, and may be missing in a frame
        **frame,
        "id": jsontext.encode(id),
        "object": b'"response"',
    }
    if frame.get("status") in _UNFINISHED:  # it was cut off
        fields["status"] = b'"incomplete"'
    fields["output"] = jsontext.join_items(native_of(message, API) or ())
    fields["usage"] = usage or b"null"
    return jsontext.join_fields(fields)


def items_in(message: str, body: bytes) -> Iterator[StoredItem]:
    """The items of a stored message, given its id and JSON.  Items without an id get one."""
    for number, raw in enumerate(_items_of_stored(body)):
        item = read_item(raw)
        if item is None:
            continue
        if item.id:
            yield StoredItem(item.id, message, raw)
            continue
        exchange, _, index = message.partition("_")[2].rpartition(".")
        id = f"{PREFIXES.get(item.kind, 'item')}_{exchange}_{index}_{number}"
        yield StoredItem(id, message, _with_id(raw, item.kind, id))


def list_object(items: Sequence[StoredItem], *, more: bool) -> bytes:
    first, last = (items[0].id, items[-1].id) if items else (None, None)
    return jsontext.join_fields(
        {
            "object": b'"list"',
            "data": jsontext.join_items([item.raw for item in items]),
            "first_id": jsontext.encode(first),
            "last_id": jsontext.encode(last),
            "has_more": jsontext.encode(more),
        }
    )


def _items_of_stored(body: bytes) -> Iterable[bytes]:
    """The items that a stored message came from, else those converted from its chat form."""
    parts = native_of(body, API)
    if parts:
        return parts
    return items_from_chat(as_chat_message(body), {})


def _with_id(raw: bytes, kind: str, id: str) -> bytes:
    """The item with an id, and as clients expect it: a message with type, status and parts."""
    fields = jsontext.fields(raw)
    if kind == MESSAGE:
        fields = {**fields, "type": b'"message"', "status": b'"completed"'}
        fields["content"] = _content_parts(fields)
    return jsontext.join_fields({**fields, "id": jsontext.encode(id)})


def _content_parts(fields: Mapping[str, bytes]) -> bytes:
    """The content of a message as a list of parts."""
    content = fields.get("content", b'""')
    if not content.startswith(b'"'):
        return content
    if fields.get("role") == b'"assistant"':
        return b'[{"type":"output_text","annotations":[],"text":' + content + b"}]"
    return b'[{"type":"input_text","text":' + content + b"}]"
