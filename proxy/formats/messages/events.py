"""What an event of a stream means to whoever waits for the answer to be complete.

``suspect`` is asked of all bytes and must be cheap; where ``mark`` is not None, it is True.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.chat import jsontext
from proxy.chat.reply.events import DONE, Mark

_KINDS = (b"message_delta", b"message_stop", b'"error"', b"\\u00", DONE)
"""``\\u00`` may spell any of them."""


def suspect(raw: bytes) -> bool:
    """May these bytes hold the end of an answer, or an error?  False only if surely not."""
    return any(kind in raw for kind in _KINDS)


class _Ending(msgspec.Struct):
    stop_reason: str | None = None


class _Signal(msgspec.Struct):
    type: str = ""
    delta: _Ending | None = None
    error: Any = None


_event = msgspec.json.Decoder(_Signal)


def _read(payload: bytes) -> _Signal | None:
    """None for what is not ours to judge: it is relayed and means nothing."""
    try:
        return _event.decode(payload)
    except jsontext.UNREADABLE:  # half a character, another shape, or no JSON at all
        pass
    try:
        return msgspec.convert(jsontext.forgiving(jsontext.shallow, payload), _Signal)
    except jsontext.UNREADABLE:
        return None


def mark(payload: bytes) -> Mark | None:
    """What a payload says: the answer is complete, the stream is done, or it failed."""
    if payload.strip() == DONE:  # some servers end all their streams so
        return "done"
    event = _read(payload)
    if event is None:
        return None
    if event.type == "error" or (event.error and not event.type):
        return "error"
    if event.type == "message_delta":
        return "finish" if event.delta and event.delta.stop_reason else None
    return "done" if event.type == "message_stop" else None
