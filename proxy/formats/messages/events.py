"""Recognises the events of a stream that finish the answer, end the stream, or are an error.

Implements ``may_end`` and ``end_signal`` of StreamReader.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.chat import jsontext
from proxy.chat.reply.events import DONE, EndSignal

_END_SIGNS = (b"message_delta", b"message_stop", b'"error"', b"\\u00", DONE)
"""Every such event has one of these; ``\\u00`` may escape any of them."""


def may_end(raw: bytes) -> bool:
    """Whether the bytes may have such an event; never False if they have."""
    return any(kind in raw for kind in _END_SIGNS)


class _Ending(msgspec.Struct):
    stop_reason: str | None = None


class _Signal(msgspec.Struct):
    type: str = ""
    delta: _Ending | None = None
    error: Any = None


_event = msgspec.json.Decoder(_Signal)


def _read(payload: bytes) -> _Signal | None:
    """The event; None if it cannot be read, which is relayed without a meaning."""
    try:
        return _event.decode(payload)
    except jsontext.UNREADABLE:  # a cut-off character, another shape, or not JSON
        pass
    try:
        return msgspec.convert(jsontext.read_leniently(jsontext.decode_shallow, payload), _Signal)
    except jsontext.UNREADABLE:
        return None


def end_signal(payload: bytes) -> EndSignal | None:
    """The meaning of a payload: the answer is complete, the stream is done, or it failed."""
    if payload.strip() == DONE:  # some servers end every stream with it
        return "done"
    event = _read(payload)
    if event is None:
        return None
    if event.type == "error" or (event.error and not event.type):
        return "error"
    if event.type == "message_delta":
        return "finish" if event.delta and event.delta.stop_reason else None
    return "done" if event.type == "message_stop" else None
