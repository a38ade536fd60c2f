"""Removes reasoning from a request after the upstream has refused it.  Pure.

Reasoning expires upstream, or is encrypted for one organisation and one family of models; a session
may outlive the one and change the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from proxy.chat import jsontext
from proxy.formats.responses.chat import ID_OPTIONAL, without_id
from proxy.formats.responses.items import (
    PREFIXES,
    REASONING,
    REFERENCE,
    ResponseItem,
    group_by_message,
    read_items,
)
from proxy.formats.responses.reading import INPUT

_REFUSED = re.compile(
    rb"item with id \W{0,4}rs_|invalid_encrypted_content|required \W{0,4}reasoning\W{0,4} item"
    rb"|required preceding item of type \W{0,4}reasoning"
    rb"|encrypted content .{0,4096}could not be",
    re.IGNORECASE | re.DOTALL,
)
_REASONING_PREFIX = f"{PREFIXES[REASONING]}_"


def refuses_reasoning(status: int, error: bytes) -> bool:
    return status in (400, 404) and _REFUSED.search(error) is not None


def without_reasoning(body: bytes) -> bytes | None:
    """The body without reasoning and references to it.

    If it has none: without items that may require the reasoning before them, and the outputs of
    those.  None if neither changes anything, or nothing would be left.
    """
    fields = jsontext.fields(body)
    raw_items = fields.get(INPUT, b"")
    items = read_items(jsontext.items(raw_items)) if raw_items.startswith(b"[") else None
    if not items:
        return None
    if any(map(_is_reasoning, items)):
        kept = [raw for group in group_by_message(items) for raw in _group_without_reasoning(group)]
    else:
        removed_calls = {item.call for item in items if _needs_reasoning(item)} - {None}
        kept = [i.raw for i in items if not (_needs_reasoning(i) or i.answers in removed_calls)]
    if len(kept) in (0, len(items)):
        return None
    return jsontext.join_fields({**fields, INPUT: jsontext.join_items(kept)})


def _group_without_reasoning(group: Sequence[ResponseItem]) -> Iterator[bytes]:
    if not any(map(_is_reasoning, group)):
        yield from (item.raw for item in group)
        return
    for item in group:
        if not _is_reasoning(item):
            yield without_id(item)


def _needs_reasoning(item: ResponseItem) -> bool:
    """Whether an item needs its id, and so may require the reasoning before it: a search or a
    request for approval, for example."""
    if item.call is None:
        return item.kind.endswith("_call")
    return bool(item.id) and item.kind not in ID_OPTIONAL


def _is_reasoning(item: ResponseItem) -> bool:
    is_reference = item.kind == REFERENCE and item.id.startswith(_REASONING_PREFIX)
    return is_reference or item.kind == REASONING
