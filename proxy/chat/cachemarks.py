"""Removes cache marks, by which a client tells its upstream what to cache of a prompt.  Pure.

They are never stored: upstreams refuse a request with more than a few, and a prompt would have
those of all earlier turns.
"""

from __future__ import annotations

from proxy.chat import jsontext

MARKS = ("cache_control", "prompt_cache_breakpoint")

_CACHE_CONTROL, _BREAKPOINT = (mark.encode() for mark in MARKS)

_MODEL_DATA = ("arguments", "input")
"""Fields of a call with data of the model, in which nothing is a cache mark."""

MAX_LEVELS = 8
"""How deeply marks are searched; the deepest known are in a part within a part's content."""


def may_have_marks(raw: bytes) -> bool:
    """A cheap test.  For speed: one character is found faster than a word, and ``rfind`` is faster
    than ``in`` for a word that is missing."""
    return b"_" in raw and (raw.rfind(_CACHE_CONTROL) >= 0 or raw.rfind(_BREAKPOINT) >= 0)


def without_marks(raw: bytes) -> bytes:
    """The JSON of a message, or of a list of some, without cache marks; else ``raw`` itself.

    Everything else keeps its bytes.
    """
    if not may_have_marks(raw):
        return raw
    try:
        return _without_marks_in(raw, MAX_LEVELS)
    except jsontext.UNREADABLE:
        return raw


def _without_marks_in(raw: bytes, levels: int) -> bytes:
    opening = raw.lstrip()[:1]
    if opening not in (b"{", b"[") or not levels or not may_have_marks(raw):
        return raw
    if opening == b"[":
        items = jsontext.items(raw)
        kept = [_without_marks_in(item, levels - 1) for item in items]
        return raw if kept == items else jsontext.join_items(kept)
    fields = jsontext.fields(raw)
    kept_fields = {
        key: value if key in _MODEL_DATA else _without_marks_in(value, levels - 1)
        for key, value in fields.items()
        if key not in MARKS
    }
    return raw if kept_fields == fields else jsontext.join_fields(kept_fields)


def without_marks_in_value(value: object, levels: int = MAX_LEVELS) -> object:
    """``without_marks`` for a decoded value, which is searched ``levels`` deep."""
    if not levels:
        return value
    if isinstance(value, list):
        return [without_marks_in_value(item, levels - 1) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _MODEL_DATA else without_marks_in_value(item, levels - 1)
            for key, item in value.items()
            if key not in MARKS
        }
    return value
