"""Removes stored items that the client's own messages repeat.  Pure.

Upstreams refuse duplicate ids, and a client may resend items in messages that reconciliation does
not recognise.  An id that a server gave to several items identifies none of them.
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
from proxy.formats.responses.chat import chat_from_items, sendable, value_of
from proxy.formats.responses.items import MESSAGE, ResponseItem, read_items

_ID = re.compile(rb'"id"\s*:\s*"([^"]+)"')

Items = Sequence[ResponseItem]


def without_resent(messages: Sequence[Piece], sent: Sequence[list[bytes]]) -> list[list[bytes]]:
    """The items (JSON) of each message, without stored ones that the client sends as well."""
    if not _may_repeat(sent):
        return [*sent]
    items = [read_items(raws) or [] for raws in sent]
    stored = _stored_flags(messages, items)
    resent = _resent_ids(items, stored) - _answered_ids(items, stored)
    return [*_without_items(resent, sent, items, stored)] if resent else [*sent]


def _may_repeat(sent: Sequence[list[bytes]]) -> bool:
    """Whether an id may occur twice.  Cheap; never False if one does."""
    ids = [id for raws in sent for raw in raws for id in _ID.findall(raw)]
    return len(set(ids)) < len(ids)


def _stored_flags(messages: Sequence[Piece], items: Sequence[Items]) -> list[bool]:
    """Whether each message is a stored one, except those that a client had sent in the model's
    name: they directly follow an answer."""
    model = [bool(each) and _is_model_item(each[0]) for each in items]
    behind = [False, *model]
    return [
        not isinstance(piece, ChatMessage) and not (own and before)
        for piece, own, before in zip(messages, model, behind, strict=False)
    ]


def _is_model_item(item: ResponseItem) -> bool:
    return item.answers is None and not item.is_client_message


def _resent_ids(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids that exactly one stored item has, and among the client's only equal items."""
    kept = [item for item in chain(*compress(items, stored)) if item.id]
    times = Counter(item.id for item in kept)
    own = defaultdict[str, set[bytes]](set)
    for item in chain(*compress(items, [not x for x in stored])):
        if item.id in times:
            own[item.id].add(_fingerprint(item))
    return {
        item.id
        for item in kept
        if times[item.id] == 1 and not item.is_client_message
        if item.id in own and own[item.id] == {_fingerprint(item)}
    }


def _fingerprint(item: ResponseItem) -> bytes:
    """Bytes that are equal for equal items: of the message or call, else of all fields."""
    if item.kind == MESSAGE or item.call is not None:
        return jsontext.encode([item.kind, chat_from_items([item])])
    fields = {k: v for k, v in value_of(item).items() if k != "status" and v is not None}
    return jsontext.canonical(fields)


def _answered_ids(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids of the stored calls that the client's outputs answer."""
    found = set[str]()
    asking: dict[str, str] = {}  # item ids by call ids, "" for the client's own calls
    for each, kept in zip(items, stored, strict=True):
        for item in each:
            if item.call is not None:
                asking[item.call] = item.id if kept else ""
            if item.answers is not None and not kept:
                found.add(asking.get(item.answers, ""))
    return found


def _without_items(
    resent: AbstractSet[str],
    sent: Sequence[list[bytes]],
    items: Sequence[Items],
    stored: Sequence[bool],
) -> Iterator[list[bytes]]:
    """Remove items with their outputs, and the reasoning that led to them."""
    gone = set[str]()  # ids of removed calls
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
