"""Cache marks in a request for a response.  Pure."""

from __future__ import annotations

from proxy.chat.message import SYSTEM_ROLES
from proxy.formats.breakpoints import Kind, Mark, with_mark, with_openai_marks
from proxy.formats.responses.items import MESSAGE, TOLD, output_of, read_item
from proxy.formats.responses.reading import INPUT
from proxy.formats.responses.writing import TEXT

_OUTPUTS = tuple(map(output_of, TOLD))


def marked_body(body: bytes, model: str | None, key: str) -> bytes:
    """A request's body with marks and a key."""
    return with_openai_marks(body, model, key, INPUT, _kind, _marked)


def _kind(raw: bytes) -> Kind:
    item = read_item(raw)
    if item is None or (item.kind != MESSAGE and item.answers is None):
        return "other"
    if item.answers is not None:
        return "result"
    if item.role in SYSTEM_ROLES:
        return "system"
    return "asked" if item.role == "user" else "other"


def _marked(raw: bytes, mark: Mark) -> bytes | None:
    """An item whose last text is marked; None for what the model has said."""
    item = read_item(raw)
    if item is None or not (item.said_by_client or item.kind in _OUTPUTS):
        return None
    return with_mark(raw, "content" if item.said_by_client else "output", mark, TEXT)
