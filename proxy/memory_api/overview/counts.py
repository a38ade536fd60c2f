"""Counts the data of a session or a person, without reading texts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from proxy.learning.feedback import FEEDBACK
from proxy.learning.kinds import Kinds
from proxy.memory.archive import PlacedExchange
from proxy.memory.history.reading import all_exchanges
from proxy.memory.items import PEOPLE, ItemOwner, Items, all_items
from proxy.memory.model import SessionKey
from proxy.memory.store import Store
from proxy.memory.usage import Meter
from proxy.memory_api.erasure.receipt import Counts
from proxy.recall.index import Index

PAGE = 500


class MemoryStore(Store, Items, Index, Meter, Protocol):
    """The store, as the memory API uses it."""


async def session_counts(store: MemoryStore, key: SessionKey, indexed: Collection[int]) -> Counts:
    """The counts of a session's history; zeros if there is no session.  Raises StoreError.

    ``indexed``: the seqs in recall's index, of which some messages may be removed.
    """
    session = await store.session(key)
    if session is None:
        return Counts()
    counts = Counts(sessions=1, summaries=len(await store.summaries(key)))
    indexed_seqs = set(indexed)
    async for placed in all_exchanges(store, key, session.end):
        counts.exchanges += 1
        counts.messages += len(placed.messages)
        counts.index_passages += sum(seq in indexed_seqs for seq in _seqs(placed))
    return counts


def _seqs(placed: PlacedExchange) -> Iterator[int]:
    """The seqs of an exchange's messages that are still there: the id of a message ends with its
    index in the exchange."""
    return (placed.first + int(message.rpartition(".")[2]) for message in placed.messages)


async def item_counts(items: Items, owner: ItemOwner, kinds: Kinds) -> Counts:
    """The counts of a person's items.  Raises StoreError."""
    counts, labels = Counts(), kinds.labels
    memory_names = {kind.name: kind.memory for kind in kinds.personal}
    async for item in all_items(items, owner, (), PAGE):
        namespace = item.namespace
        label = namespace[2] if namespace[:1] == (PEOPLE,) and len(namespace) > 2 else ""
        if label in memory_names:
            counts.memories[memory_names[label]] += 1
        elif label == FEEDBACK:
            counts.feedback += 1
        elif label not in labels:
            counts.items += 1
    return counts
