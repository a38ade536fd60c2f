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
from proxy.formats.responses.chat import chat_from_items, sendable_items, value_of
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
    """Whether each message is a stored one.

    A stored message of the model that directly follows another one counts as the client's, which
    had sent it in the model's name.
    """
    from_model = [bool(each) and _is_model_item(each[0]) for each in items]
    return [
        not isinstance(piece, ChatMessage) and not (own and previous)
        for piece, own, previous in zip(messages, from_model, [False, *from_model], strict=False)
    ]


def _is_model_item(item: ResponseItem) -> bool:
    return item.answers is None and not item.is_client_message


def _resent_ids(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids that exactly one stored item has, and of the client's items only equal ones."""
    stored_items = [item for item in chain(*compress(items, stored)) if item.id]
    counts = Counter(item.id for item in stored_items)
    client_items = defaultdict[str, set[bytes]](set)
    for item in chain(*compress(items, [not x for x in stored])):
        if item.id in counts:
            client_items[item.id].add(_fingerprint(item))
    return {
        item.id
        for item in stored_items
        if counts[item.id] == 1 and not item.is_client_message
        if item.id in client_items and client_items[item.id] == {_fingerprint(item)}
    }


def _fingerprint(item: ResponseItem) -> bytes:
    """Bytes that are equal for equal items: of the message or call, else of all fields."""
    if item.kind == MESSAGE or item.call is not None:
        return jsontext.encode([item.kind, chat_from_items([item])])
    fields = {k: v for k, v in value_of(item).items() if k != "status" and v is not None}
    return jsontext.canonical(fields)


def _answered_ids(items: Sequence[Items], stored: Sequence[bool]) -> set[str]:
    """The ids of the stored calls that the client's outputs answer."""
    answered = set[str]()
    item_ids: dict[str, str] = {}  # item ids by call ids, "" for the client's own calls
    for each, is_stored in zip(items, stored, strict=True):
        for item in each:
            if item.call is not None:
                item_ids[item.call] = item.id if is_stored else ""
            if item.answers is not None and not is_stored:
                answered.add(item_ids.get(item.answers, ""))
    return answered


def _without_items(
    resent: AbstractSet[str],
    sent: Sequence[list[bytes]],
    items: Sequence[Items],
    stored: Sequence[bool],
) -> Iterator[list[bytes]]:
    """Remove items with their outputs, and the reasoning that led to them."""
    removed_calls = set[str]()
    for raws, each, is_stored in zip(sent, items, stored, strict=True):
        remaining = []
        for item in each:
            is_removed = is_stored and item.id in resent
            if item.call is not None:
                (removed_calls.add if is_removed else removed_calls.discard)(item.call)
            if not is_removed and not (is_stored and item.answers in removed_calls):
                remaining.append(item)
        if len(remaining) == len(each):
            yield raws
        else:
            yield [item.raw for item in sendable_items(remaining, sys.maxsize)]
