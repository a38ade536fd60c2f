"""No item twice in a request: as it is stored and as the client sends it, or stored twice.  Pure.

Upstreams refuse an id that comes twice, and what a client makes of a conversation is not always
recognised.  An id that a server has given to several items names none of them.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage, Piece
from proxy.formats.responses.chat import said_of, sendable
from proxy.formats.responses.items import ResponseItem, read_items

_ID = re.compile(rb'"id"\s*:\s*"([^"]+)"')


def without_resent(messages: Sequence[Piece], sent: Sequence[list[bytes]]) -> list[list[bytes]]:
    """The items of each message; of those with a name once the client's, else the first one."""
    if not _may_repeat(sent):
        return [*sent]
    stored = [not isinstance(piece, ChatMessage) for piece in messages]
    items = [read_items(raws) or [] for raws in sent]
    own = chain(*(each for each, kept in zip(items, stored, strict=True) if not kept))
    once = _Once(_names(chain(*items)), own)
    return [
        once.kept(each) if kept and each else raws
        for raws, each, kept in zip(sent, items, stored, strict=True)
    ]


def _names(items: Iterable[ResponseItem]) -> set[str]:
    """The ids that come several times, and always with the same."""
    found = defaultdict[str, list[ResponseItem]](list)
    for item in items:
        if item.id and not item.said_by_client:
            found[item.id].append(item)
    return {id for id, each in found.items() if len(each) > 1 and len(set(map(_said, each))) == 1}


def _said(item: ResponseItem) -> bytes:
    return jsontext.encode([item.kind, said_of([item])])


def _may_repeat(sent: Sequence[list[bytes]]) -> bool:
    """A quick look: False only if surely none does."""
    ids = [id for raws in sent for raw in raws for id in _ID.findall(raw)]
    return len(set(ids)) < len(ids)


class _Once:
    """The stored messages of a request, one after the other; ``own`` are the client's items."""

    def __init__(self, names: AbstractSet[str], own: Iterable[ResponseItem]) -> None:
        self._names, self._taken = names, {item.id for item in own}
        self._gone = set[str]()
        """Calls whose last one is left out."""

    def kept(self, items: Sequence[ResponseItem]) -> list[bytes]:
        """A call goes with its output, and a thought with what follows from it."""
        left = [item for item in items if not self._is_taken(item)]
        left = [item for item in left if item.answers not in self._gone]
        if len(left) < len(items):
            left = sendable(left, sys.maxsize)
        return [item.raw for item in left]

    def _is_taken(self, item: ResponseItem) -> bool:
        taken = item.id in self._names and item.id in self._taken
        self._taken.add(item.id)
        if item.call is not None:
            (self._gone.add if taken else self._gone.discard)(item.call)
        return taken
