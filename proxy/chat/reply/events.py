"""Recognises the events of a stream that finish choice 0, end the stream, or are an error.

``may_end`` is called for all events and must be cheap; ``end_signal`` parses the few for which it
is True.  If ``end_signal`` is not None, ``may_end`` is True.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.large_answers import may_have_many_values, read_slim

EndSignal = Literal["finish", "done", "error"]

DONE = b"[DONE]"
_NO_FINISH = re.compile(rb'"finish_reason"\s*:\s*null')


def may_end(raw: bytes) -> bool:
    """Whether the bytes may have a finish, an error or the end of the stream.

    False only if every ``finish_reason`` is null and no key is escaped (``\\u00``).
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


def end_signal(payload: bytes) -> EndSignal | None:
    """The meaning of a payload: choice 0 is finished, the stream is done, or it failed.

    The index of a choice without one is its position.  An error is an object with ``error`` and
    without choices.
    """
    if payload.strip() == DONE:
        return "done"
    if may_have_many_values(payload):
        return _end_signal_in(read_slim(payload, "delta", 0))
    try:
        event = _event.decode(payload)
    except jsontext.UNREADABLE:  # an unusual shape, half a surrogate pair, or no JSON at all
        return _end_signal_slow(payload)
    if event.choices:
        finishes = [(choice.index, choice.finish_reason) for choice in event.choices]
        return "finish" if _is_first_finished(finishes) else None
    return "error" if is_error(event.error, event.kind) else None


def is_error(error: object, kind: object) -> bool:
    """Whether an object is an error, by its ``error``, or its ``object`` alone as some have it."""
    return (error is not None and error is not False) or kind == "error"


def _end_signal_slow(payload: bytes) -> EndSignal | None:
    try:
        return _end_signal_in(jsontext.read_leniently(jsontext.decode, payload))
    except jsontext.UNREADABLE:  # it is relayed, and has no meaning here
        return None


def _end_signal_in(event: object) -> EndSignal | None:
    if not isinstance(event, dict):
        return None
    choices = event.get("choices")
    if not isinstance(choices, list) or not choices:
        return "error" if is_error(event.get("error"), event.get("object")) else None
    finishes = [(c.get("index"), c.get("finish_reason")) for c in choices if isinstance(c, dict)]
    return "finish" if _is_first_finished(finishes) else None


def _is_first_finished(choices: Iterable[tuple[object, object]]) -> bool:
    """Whether choice 0 has a finish reason, given the index and finish reason of each choice.

    Some upstreams send "" in every chunk.
    """
    for position, (index, reason) in enumerate(choices):
        if reason and (position if index is None else index) == 0:
            return True
    return False
