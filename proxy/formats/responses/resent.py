"""No item twice in a request: as it is stored, and as the client sends it.  Pure.

Upstreams refuse an id that comes twice, and what a client makes of a conversation is not always
recognised.  An id that a server has given to several items names none of them.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, compress

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage, Piece
from proxy.formats.responses.chat import said_of, sendable, value_of
from proxy.formats.responses.items import MESSAGE, ResponseItem, read_items

_ID = re.compile(rb'"id"\s*:\s*"([^"]+)"')

Items = Sequence[ResponseItem]


def without_resent(messages: Sequence[Piece], sent: Sequence[list[bytes]]) -> list[list[bytes]]:
    """The items of each message, without the stored ones that are the client's too."""
    if not _may_repeat(sent):
        return [*sent]
    items = [read_items(raws) or [] for raws in sent]
    stored = _stored(messages, items)
    resent = _resent(items, stored) - _answered(items, stored)
    return [*_without(resent, sent, items, stored)] if resent else [*sent]


def _may_repeat(sent: Sequence[list[bytes]]) -> bool:
    """A quick look: False only if surely none does."""
    ids = [id for raws in sent for raw in raws for id in _ID.findall(raw)]
    return len(set(ids)) < len(ids)


def _stored(messages: Sequence[Piece], items: Sequence[Items]) -> list[bool]:
    """Which are stored, but for those that a client had sent: they stand right behind an answer."""
    model = [bool(each) and _is_models(each[0]) for each in items]
    behind = [False, *model]
    return [
        not isinstance(piece, ChatMessage) and not (own and before)
        for piece, own, before in zip(messages, model, behind, strict=False)
    ]


def _is_models(item: ResponseItem) -> bool:
    return item.answers is None and not item.said_by_client


def _resent(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids that are stored once, and that of the client's items only the same have."""
    kept = [item for item in chain(*compress(items, stored)) if item.id]
    times = Counter(item.id for item in kept)
    own = defaultdict[str, set[bytes]](set)
    for item in chain(*compress(items, [not x for x in stored])):
        if item.id in times:
            own[item.id].add(_said(item))
    return {
        item.id
        for item in kept
        if times[item.id] == 1 and not item.said_by_client
        if item.id in own and own[item.id] == {_said(item)}
    }


def _said(item: ResponseItem) -> bytes:
    """What tells it from others of its id: its words or its call, else all that it is."""
    if item.kind == MESSAGE or item.call is not None:
        return jsontext.encode([item.kind, said_of([item])])
    told = {k: v for k, v in value_of(item).items() if k != "status" and v is not None}
    return jsontext.canonical(told)


def _answered(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids of the stored calls that the client's outputs answer."""
    found = set[str]()
    asking: dict[str, str] = {}  # by their calls, "" for the client's own
    for each, kept in zip(items, stored, strict=True):
        for item in each:
            if item.call is not None:
                asking[item.call] = item.id if kept else ""
            if item.answers is not None and not kept:
                found.add(asking.get(item.answers, ""))
    return found


def _without(
    resent: AbstractSet[str],
    sent: Sequence[list[bytes]],
    items: Sequence[Items],
    stored: Sequence[bool],
) -> Iterator[list[bytes]]:
    """A call goes with its output, and a thought with what follows from it."""
    gone = set[str]()  # calls whose last one is left out
    for raws, each, kept in zip(sent, items, stored, strict=True):
        left = []
        for item in each:
            taken = kept and item.id in resent
            if item.call is not None:
                (gone.add if taken else gone.discard)(item.call)
            if not taken and not (kept and item.answers in gone):
                left.append(item)
        whole = len(left) == len(each)
        yield raws if whole else [item.raw for item in sendable(left, sys.maxsize)]
