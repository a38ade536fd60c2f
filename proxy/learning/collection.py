"""Learned memory of an owner, a person or a tenant, as items of the store.

All changes are made here, by optimistic concurrency: a change is computed from what was read, and
stored only if nobody has changed that since; else it is computed again.  Within a process the
changes of one owner's items wait for each other, so that only other processes can conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from proxy.learning.evidence import IsGone
from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, ItemOwner, Items, Namespace, Place
from proxy.memory.locks import Locks

ATTEMPTS = 20

LOCK_TIMEOUT = 15.0
"""Seconds that a change waits for earlier changes of the same owner."""

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)

Step = Callable[[], Awaitable[tuple[T, Sequence[Change]]]]
"""Reads and checks; returns a result and the changes that are to be made for it.

It must not call ``update`` for the same owner itself, which would wait for its own lock.
"""


class Busy(Exception):
    """Too many conflicts with others' changes, or too long a wait for them: nothing was changed."""


class OwnerLocks:
    """A lock for each owner whose items this process changes; dropped when nothing uses it."""

    def __init__(self, timeout: float = LOCK_TIMEOUT) -> None:
        self._timeout = timeout
        self._locks: Locks[ItemOwner] = Locks()

    @asynccontextmanager
    async def hold(self, owner: ItemOwner) -> AsyncIterator[None]:
        """Hold the lock of an owner.  Raises Busy if it is not free in time."""
        lock = self._locks.of(owner)
        try:
            async with asyncio.timeout(self._timeout):
                await lock.acquire()
        except TimeoutError:
            raise Busy from None
        try:
            yield
        finally:
            lock.release()


class Stored(msgspec.Struct, Generic[StructT], frozen=True):
    """A stored value; ``version`` is 0 if it is not stored yet.  Times are Unix seconds."""

    value: StructT
    version: int = 0
    created_at: float = 0.0
    updated_at: float | None = None


class LearnedMemory(msgspec.Struct, frozen=True):
    """A learned memory in a list.  Its fields are computed only if it is on the page.

    ``confirmed`` is when it was last said (Unix seconds), None for what never goes stale;
    ``fields`` takes a function that counts the tokens of a text.
    """

    id: str
    state: str
    created_at: float
    confirmed: float | None
    fields: Callable[[Callable[[str], int]], dict[str, object]]


class KindStore(Protocol):
    """Stores one kind of people's learned memory.  All methods raise StoreError."""

    async def forget(self, owner: ItemOwner, is_gone: IsGone, dry_run: bool) -> list[Forgotten]:
        """Remove a person's memory that was learned from sources for which ``is_gone`` is true.

        Returns what it did, or with ``dry_run`` would do.  Raises Busy as well.
        """
        ...


class ListedStore(KindStore, Protocol):
    """A store of separate memories with ids, and a card computed from them."""

    async def drop(self, owner: ItemOwner, id: str, check: Callable[[Item], None]) -> bool:
        """Delete a memory; False if there was none.  ``check`` raises if it must not be deleted.
        Raises Busy as well."""
        ...

    async def card_change(self, owner: ItemOwner) -> Change:
        """The change that computes the card from the stored items."""
        ...


Action = Literal["deleted", "source_removed", "restored", "rolled_back"]


class Forgotten(msgspec.Struct, frozen=True):
    """A memory that was forgotten, or changed because another was; ``text`` is its text."""

    id: str
    kind: str
    action: Action
    text: str


def accept_any(stored: object) -> None:
    """A check that never raises."""


class Collection:
    """All methods raise StoreError.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.  ``locks`` is shared by all that
    change items of the same owners.
    """

    def __init__(
        self,
        items: Items,
        count: Callable[[str], int],
        clock: Callable[[], float],
        locks: OwnerLocks | None = None,
    ) -> None:
        self.items, self.count, self.clock = items, count, clock
        self._owner_locks = OwnerLocks() if locks is None else locks

    async def update(self, owner: ItemOwner, step: Step[T], since: float | None = None) -> T:
        return await update(self.items, self._owner_locks, owner, step, since)

    async def item_at(self, owner: ItemOwner, place: Place) -> Item | None:
        return (await self.items.items_at(owner, [place])).get(place)

    async def read(self, owner: ItemOwner, place: Place, default: StructT) -> Stored[StructT]:
        """The value at a place, ``default`` if there is none."""
        return stored_or(default, await self.item_at(owner, place))

    async def page(
        self, owner: ItemOwner, where: Namespace, after: str | None, limit: int, kind: type[StructT]
    ) -> Page[StructT]:
        """Values by key, ascending, after the key ``after``; the page's ``after`` is a key."""
        start = Place(where, after) if after is not None else None
        page = await self.items.items(owner, where, start, limit)
        values = tuple(msgspec.json.decode(item.value, type=kind) for item in page.items)
        return Page(values, page.items[-1].key if page.after is not None else None)


async def update(
    items: Items, locks: OwnerLocks, owner: ItemOwner, step: Step[T], since: float | None = None
) -> T:
    """Make the changes of a step, which is called again while others' changes conflict; returns
    its result.

    The step's input was read at ``since``: see Items.change_items.  Raises StoreError, Busy, and
    what the step raises.
    """
    async with locks.hold(owner):
        for _ in range(ATTEMPTS):
            result, changes = await step()
            if not changes or await items.change_items(owner, changes, since):
                return result
    raise Busy


def decode_item(item: Item, kind: type[StructT]) -> Stored[StructT]:
    value = msgspec.json.decode(item.value, type=kind)
    return Stored(value, item.version, item.created_at, item.updated_at)


def stored_or(default: StructT, item: Item | None) -> Stored[StructT]:
    """The value of an item, ``default`` if there is none."""
    return decode_item(item, type(default)) if item else Stored(default)


def put_change(
    place: Place, value: msgspec.Struct, after: int | None, expires_at: float | None = None
) -> Change:
    """The change that puts a value; ``after`` as in Change."""
    return Change(
        namespace=place.namespace,
        key=place.key,
        value=msgspec.json.encode(value),
        after=after,
        expires_at=expires_at,
    )


def delete_change(place: Place, after: int | None = None) -> Change:
    """The change that deletes an item; ``after`` as in Change."""
    return Change(namespace=place.namespace, key=place.key, value=None, after=after)
