"""Reasoning that an upstream does not take back.  Pure.

It is kept upstream for a while, or encrypted for one organisation and a family of models; a session
outlives the one and may go on in front of another.  The request is sent again without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from proxy.chat import jsontext
from proxy.formats.responses.chat import NAMED, without_thought
from proxy.formats.responses.items import (
    PREFIXES,
    REASONING,
    REFERENCE,
    ResponseItem,
    grouped,
    read_items,
)
from proxy.formats.responses.reading import INPUT

_REFUSED = re.compile(
    rb"item with id \W{0,4}rs_|invalid_encrypted_content|required \W{0,4}reasoning\W{0,4} item"
    rb"|required preceding item of type \W{0,4}reasoning"
    rb"|encrypted content .{0,4096}could not be",
    re.IGNORECASE | re.DOTALL,
)
_THOUGHTS = f"{PREFIXES[REASONING]}_"


def refuses_thoughts(status: int, error: bytes) -> bool:
    return status in (400, 404) and _REFUSED.search(error) is not None


def without_thoughts(body: bytes) -> bytes | None:
    """A request's body without reasoning, sent or named; where it has none, without what may want
    the thought before it, and what answers that.  None if it has neither, or nothing else."""
    fields = jsontext.fields(body)
    listed = fields.get(INPUT, b"")
    items = read_items(jsontext.items(listed)) if listed.startswith(b"[") else None
    if not items:
        return None
    if any(map(_is_thought, items)):
        kept = [raw for group in grouped(items) for raw in _thoughtless(group)]
    else:
        bound = {item.call for item in items if _is_bound(item)} - {None}
        kept = [i.raw for i in items if not (_is_bound(i) or i.answers in bound)]
    if len(kept) in (0, len(items)):
        return None
    return jsontext.join_fields({**fields, INPUT: jsontext.join_items(kept)})


def _thoughtless(group: Sequence[ResponseItem]) -> Iterator[bytes]:
    if not any(map(_is_thought, group)):
        yield from (item.raw for item in group)
        return
    for item in group:
        if not _is_thought(item):
            yield without_thought(item)


def _is_bound(item: ResponseItem) -> bool:
    """A search, say, or a request for approval: such an item has no place without its id."""
    if item.call is None:
        return item.kind.endswith("_call")
    return bool(item.id) and item.kind not in NAMED


def _is_thought(item: ResponseItem) -> bool:
    return item.kind == REASONING or (item.kind == REFERENCE and item.id.startswith(_THOUGHTS))
