"""Reads a streamed response, event by event.

The last event has the whole response.  If it is missing, or has no output, the reply is built from
the finished items and the text of unfinished ones.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import NULL
from proxy.chat.large_answers import max_value_count
from proxy.chat.reply.answer import Reply
from proxy.chat.reply.deltas import Rope
from proxy.chat.reply.events import DONE, EndSignal
from proxy.chat.reply.reply import MAX_REPLY_BYTES, MAX_REPLY_VALUES
from proxy.formats.native import OMITTED
from proxy.formats.responses.items import ResponseItem, read_item
from proxy.formats.responses.reply import Response, read_response, reply_of

MAX_ITEMS = 4_096
"""Items of one response that are kept."""

_END_SIGNALS: dict[object, EndSignal] = {
    "response.completed": "finish",
    "response.incomplete": "finish",
    "response.failed": "error",
    "response.cancelled": "error",
    "error": "error",
}
_END_SIGNS = (
    *(b"response.completed", b"response.incomplete", b"response.failed", b"response.cancelled"),
    *(b'"error"', DONE, b"\\u00"),
)

_TEXT_FIELDS: dict[object, Literal["text", "refusal"]] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
}


class _Named(msgspec.Struct):
    id: str = ""


class _StreamEvent(msgspec.Struct):
    type: Any = None
    output_index: Any = None
    delta: Any = None
    item: msgspec.Raw = NULL
    response: msgspec.Raw = NULL
    error: Any = None


_event = jsontext.struct_reader(_StreamEvent)
_named = msgspec.json.Decoder(_Named)


class EventReader:
    """See StreamReader."""

    def __init__(self, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self._remaining_bytes, self._remaining_values = max_bytes, MAX_REPLY_VALUES
        self._items: dict[int, ResponseItem] = {}
        self._texts: dict[int, dict[str, Rope]] = {}
        self._open_ids: dict[int, str] = {}
        """The ids of items that were begun, by index."""
        self._response: Response | None = None
        self._raw = b"{}"
        self._failed = self._truncated = False

    def may_end(self, raw: bytes) -> bool:
        return any(sign in raw for sign in _END_SIGNS)

    def end_signal(self, payload: bytes) -> EndSignal | None:
        if payload.strip() == DONE:
            return "done"
        event = _read(payload)
        return None if event is None else _end_signal_of(event)

    def feed(self, payload: bytes) -> None:
        event = _read(payload)
        if event is None:
            return
        if event.type in _TEXT_FIELDS:
            self._add_text(event)
        elif event.type == "response.output_item.added":
            self._begin_item(event)
        elif event.type == "response.output_item.done":
            self._add_item(event)
        elif event.response != NULL:
            self._set_response(bytes(event.response))
        self._failed = self._failed or _end_signal_of(event) == "error"

    def build(self) -> Reply:
        response = self._response or Response()
        items, unfinished = response.items, dict[str, bytes]()
        if not items:
            items = [self._item_at(at) for at in sorted({*self._items, *self._texts})]
            unfinished = self._unfinished()
        reply = reply_of(
            response, items, raw=self._raw, truncated=self._truncated, unfinished=unfinished
        )
        return msgspec.structs.replace(reply, error=reply.error or self._failed)

    def _set_response(self, raw: bytes) -> None:
        """Take the response object of an event, which replaces that of earlier events."""
        response = read_response(raw)
        if response is None:
            self._truncated = True
        else:
            self._response, self._raw = response, raw

    def _add_text(self, event: _StreamEvent) -> None:
        at, delta = event.output_index, event.delta
        if not isinstance(delta, str) or not self._has_room(at, len(delta)):
            return
        kind = _TEXT_FIELDS[event.type]
        self._texts.setdefault(at, {}).setdefault(kind, Rope()).add(delta)

    def _begin_item(self, event: _StreamEvent) -> None:
        try:
            name = _named.decode(event.item).id
        except jsontext.UNREADABLE:
            return
        if name and self._has_room(event.output_index, len(name)):
            self._open_ids[event.output_index] = name

    def _add_item(self, event: _StreamEvent) -> None:
        at, raw = event.output_index, bytes(event.item)
        self._remaining_values -= max_value_count(raw)
        self._truncated = self._truncated or self._remaining_values < 0
        if self._remaining_values < 0 or not self._has_room(at, len(raw)):
            return
        item = read_item(raw)
        if item is not None:
            self._items[at] = item

    def _has_room(self, at: object, size: int) -> bool:
        """Whether ``size`` more bytes of the item at this index are within the limits."""
        self._remaining_bytes -= size
        self._truncated = self._truncated or self._remaining_bytes < 0
        return self._remaining_bytes >= 0 and isinstance(at, int) and 0 <= at < MAX_ITEMS

    def _unfinished(self) -> dict[str, bytes]:
        """Substitutes, by id, for unfinished items: their text as an item (JSON), else null."""
        names = ((at, name) for at, name in self._open_ids.items() if at not in self._items)
        return {name: self._item_at(at).raw if at in self._texts else OMITTED for at, name in names}

    def _item_at(self, at: int) -> ResponseItem:
        """The finished item at an index, else one with the text received so far."""
        item = self._items.get(at)
        if item is not None:
            return item
        parts = [
            {"type": f"output_{kind}" if kind == "text" else kind, kind: str(rope)}
            for kind, rope in self._texts[at].items()
        ]
        message = {"type": "message", "role": "assistant", "content": parts}
        built = read_item(jsontext.encode(message))
        assert built is not None  # it is an object
        return built


def _read(payload: bytes) -> _StreamEvent | None:
    try:
        return jsontext.read_leniently(_event, payload)
    except jsontext.UNREADABLE:
        return None


def _end_signal_of(event: _StreamEvent) -> EndSignal | None:
    """The meaning of an event; an object with an ``error`` and no type is an error, as in other
    APIs."""
    if isinstance(event.type, str):
        return _END_SIGNALS.get(event.type)
    return "error" if event.type is None and event.error is not None else None
