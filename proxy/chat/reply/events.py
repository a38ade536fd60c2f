"""What an event of a stream means to whoever waits for the answer to be complete.

``suspect`` is asked of all bytes and must be cheap; ``mark`` reads the few payloads that it lets
through.  Where ``mark`` is not None, ``suspect`` is True.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.slim import is_heavy, slimmed

Mark = Literal["finish", "done", "error"]

DONE = b"[DONE]"
_NO_FINISH = re.compile(rb'"finish_reason"\s*:\s*null')


def suspect(raw: bytes) -> bool:
    """May these bytes hold a finish, an error or the end?  False only if surely not.

    Every ``finish_reason`` must be seen to be null.  ``\\u00`` may spell a key.
    """
    return (
        b"\\u00" in raw
        or b'"error"' in raw
        or DONE in raw
        or (
            # the two usual spellings first: the regular expression costs twice as much
            raw.count(b"finish_reason")
            != raw.count(b'"finish_reason":null') + raw.count(b'"finish_reason": null')
            and raw.count(b"finish_reason") != len(_NO_FINISH.findall(raw))
        )
    )


class _EventChoice(msgspec.Struct):
    index: int | None = None
    finish_reason: str | None = None


class _Event(msgspec.Struct):
    choices: list[_EventChoice] | None = None
    error: Any = None
    kind: Any = msgspec.field(name="object", default=None)


_event = msgspec.json.Decoder(_Event)


def mark(payload: bytes) -> Mark | None:
    """What a whole payload says: choice 0 is finished, the stream is done, or it failed.

    A choice without an index has its place as index.  An error is an object with an ``error`` and
    no choices.
    """
    if payload.strip() == DONE:
        return "done"
    if is_heavy(payload):
        return _mark_in(slimmed(payload, "delta", 0))
    try:
        event = _event.decode(payload)
    except jsontext.UNREADABLE:  # an unusual shape, half a surrogate pair, or no JSON at all
        return _mark_any(payload)
    if event.choices:
        return "finish" if _finished([(c.index, c.finish_reason) for c in event.choices]) else None
    return "error" if is_error(event.error, event.kind) else None


def is_error(error: object, kind: object) -> bool:
    """Does an object say that the upstream failed?  Some say it with their ``object`` alone."""
    return (error is not None and error is not False) or kind == "error"


def _mark_any(payload: bytes) -> Mark | None:
    try:
        return _mark_in(jsontext.forgiving(jsontext.decode, payload))
    except jsontext.UNREADABLE:  # not ours to judge: it is relayed and means nothing
        return None


def _mark_in(event: object) -> Mark | None:
    if not isinstance(event, dict):
        return None
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices:
        return "error" if is_error(event.get("error"), event.get("object")) else None
    found = [(c.get("index"), c.get("finish_reason")) for c in choices if isinstance(c, dict)]
    return "finish" if _finished(found) else None


def _finished(choices: list[tuple[object, object]]) -> bool:
    """An empty reason is none: some upstreams send it in every chunk."""
    for place, (index, reason) in enumerate(choices):
        if reason and (place if index is None else index) == 0:
            return True
    return False
