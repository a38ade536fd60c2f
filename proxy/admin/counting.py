"""Counting what there is of a session or of a person, without reading what it says."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from proxy.admin.receipt import Counts
from proxy.learning.episode import FEATURE as EPISODES
from proxy.learning.fact import FACTS
from proxy.learning.feedback import FEEDBACK
from proxy.learning.profile import FEATURE as PROFILE
from proxy.memory.archive import Placed
from proxy.memory.items import PEOPLE, RESERVED, Items, Shelf, all_items
from proxy.memory.model import SessionKey
from proxy.memory.reading import all_exchanges
from proxy.memory.store import Store
from proxy.recall.index import Index

PAGE = 500

_KINDS = {FACTS: "fact", PROFILE: "profile", EPISODES: "episode"}
"""What the third label of a person's namespace says of the items in it."""


class Counted(Store, Items, Index, Protocol):
    """A store, as far as counting and erasing need it."""


async def session_counts(
    store: Counted, key: SessionKey, indexed: Collection[int] = frozenset()
) -> Counts:
    """Of a session's history; of none, nothing.  Raises StoreError.

    ``indexed`` are the seqs that recall's index leads to; some of these messages may be gone.
    """
    session = await store.session(key)
    if session is None:
        return Counts()
    counts = Counts(sessions=1, summaries=len(await store.summaries(key)))
    async for placed in all_exchanges(store, key, session.end):
        counts.exchanges += 1
        counts.messages += len(placed.messages)
        counts.index_passages += sum(seq in indexed for seq in _seqs(placed))
    return counts


def _seqs(placed: Placed) -> Iterator[int]:
    """Of an exchange's messages that are there: an id ends with the index in the exchange."""
    return (placed.first + int(message.rpartition(".")[2]) for message in placed.messages)


async def shelf_counts(items: Items, shelf: Shelf) -> Counts:
    """Of all that is kept of a person beside history.  Raises StoreError."""
    counts = Counts()
    async for item in all_items(items, shelf, (), PAGE):
        namespace = item.namespace
        label = namespace[2] if namespace[:1] == (PEOPLE,) and len(namespace) > 2 else ""
        if label in _KINDS:
            counts.memories[_KINDS[label]] += 1
        elif label == FEEDBACK:
            counts.feedback += 1
        elif label not in RESERVED:
            counts.items += 1
    return counts
