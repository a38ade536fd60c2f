"""Cache marks: where a client wants its upstream to cache a prompt.  Pure.

They are the client's, for one request: they are never stored, for an upstream refuses a request
with more than a few of them, and each turn would bring back those of all turns before.
"""

from __future__ import annotations

from proxy.chat import jsontext

MARKS = ("cache_control", "prompt_cache_breakpoint")

_CACHE_CONTROL, _BREAKPOINT = (mark.encode() for mark in MARKS)

_DATA = ("arguments", "input")
"""Fields of a call that are a model's own words, whatever their names."""

MAX_LEVELS = 8
"""How deep marks are looked for; the deepest that is known is a part within a part's content."""


def may_have_marks(raw: bytes) -> bool:
    """A quick look: one sign is found far sooner than a word, and a word that is not there sooner
    from the end."""
    return b"_" in raw and (raw.rfind(_CACHE_CONTROL) >= 0 or raw.rfind(_BREAKPOINT) >= 0)


def without_marks(raw: bytes) -> bytes:
    """The JSON of a message, or of a list of some, without cache marks; else ``raw`` itself.

    Everything else keeps its bytes.
    """
    if not may_have_marks(raw):
        return raw
    try:
        return _without(raw, MAX_LEVELS)
    except jsontext.UNREADABLE:
        return raw


def _without(raw: bytes, levels: int) -> bytes:
    kind = raw.lstrip()[:1]
    if kind not in (b"{", b"[") or not levels or not may_have_marks(raw):
        return raw
    if kind == b"[":
        items = jsontext.items(raw)
        kept = [_without(item, levels - 1) for item in items]
        return raw if kept == items else jsontext.join_items(kept)
    fields = jsontext.fields(raw)
    left = {
        key: value if key in _DATA else _without(value, levels - 1)
        for key, value in fields.items()
        if key not in MARKS
    }
    return raw if left == fields else jsontext.join_fields(left)


def unmarked(value: object, levels: int = MAX_LEVELS) -> object:
    """The same for a value that is decoded."""
    if not levels:
        return value
    if isinstance(value, list):
        return [unmarked(item, levels - 1) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in _DATA else unmarked(item, levels - 1)
            for key, item in value.items()
            if key not in MARKS
        }
    return value
