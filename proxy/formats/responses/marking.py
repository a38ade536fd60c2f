"""Adds cache marks to a request for a response.  Pure."""

from __future__ import annotations

from proxy.chat.message import SYSTEM_ROLES
from proxy.formats.breakpoints import CacheMark, MessageKind, with_mark, with_openai_marks
from proxy.formats.responses.items import CHAT_CALLS, MESSAGE, output_kind, read_item
from proxy.formats.responses.reading import INPUT
from proxy.formats.responses.writing import TEXT

_OUTPUTS = tuple(map(output_kind, CHAT_CALLS))


def marked_body(body: bytes, model: str | None, key: str) -> bytes:
    """The body with cache marks and a cache key."""
    return with_openai_marks(body, model, key, INPUT, _kind, _add_mark)


def _kind(raw: bytes) -> MessageKind:
    item = read_item(raw)
    if item is None or (item.kind != MESSAGE and item.answers is None):
        return "other"
    if item.answers is not None:
        return "result"
    if item.role in SYSTEM_ROLES:
        return "system"
    return "question" if item.role == "user" else "other"


def _add_mark(raw: bytes, mark: CacheMark) -> bytes | None:
    """The item with a mark on its last text; None for the model's.  See ``AddMark``."""
    item = read_item(raw)
    if item is None or not (item.is_client_message or item.kind in _OUTPUTS):
        return None
    return with_mark(raw, "content" if item.is_client_message else "output", mark, TEXT)
