"""What is learned as it lies on a shelf: read, changed and stored as a whole, or not at all.

The one place where that is changed.  Who changes something reads it first and says what it is to
become; that is stored if nobody else has changed it since, else all begins anew.  In one process
the changes of a shelf take turns, so that only other processes are in their way.
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

PATIENCE = 15.0
"""Seconds that a change waits for those of the same shelf before it."""

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)

Step = Callable[[], Awaitable[tuple[T, Sequence[Change]]]]
"""Reads, checks, and says what comes of it and what has to be changed for that.

It must not change the shelf itself: it would wait for its own turn.
"""


class Busy(Exception):
    """Others have changed the same again and again, or for long: nothing was done."""


class Turns:
    """Who changes what in this process, by shelf; those that nobody changes are not kept."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._locks: Locks[ItemOwner] = Locks()

    @asynccontextmanager
    async def turn(self, shelf: ItemOwner) -> AsyncIterator[None]:
        """While it lasts nobody else has one on this shelf.  Raises Busy if none comes."""
        lock = self._locks.of(shelf)
        try:
            async with asyncio.timeout(self._patience):
                await lock.acquire()
        except TimeoutError:
            raise Busy from None
        try:
            yield
        finally:
            lock.release()


class Stored(msgspec.Struct, Generic[StructT], frozen=True):
    """A value as it lies on its shelf; ``version`` is 0 where there is none.  Unix seconds."""

    value: StructT
    version: int = 0
    created_at: float = 0.0
    updated_at: float | None = None


class LearnedMemory(msgspec.Struct, frozen=True):
    """One of what is learned of a person, as it is listed: made into fields if somebody sees it.

    ``confirmed`` is when it was last said, None of what never goes stale; ``shown`` gives the
    fields, for what counts the tokens of a text.
    """

    id: str
    state: str
    created_at: float
    confirmed: float | None
    shown: Callable[[Callable[[str], int]], dict[str, object]]


class KindStore(Protocol):
    """Where one kind of what is learned of people is kept.  All methods raise StoreError."""

    async def forget(self, shelf: ItemOwner, is_gone: IsGone, dry_run: bool) -> list[Forgotten]:
        """Take what was learned from there out of all that a person's shelf holds.

        What it did, or with ``dry_run`` would do.  Raises Busy as well.
        """
        ...


class ListedStore(KindStore, Protocol):
    """One whose items are memories of their own, kept by their ids, with a card beside them."""

    async def drop(self, shelf: ItemOwner, id: str, check: Callable[[Item], None]) -> bool:
        """False if there was none.  ``check`` raises where it is not what is meant to go.

        Raises Busy as well.
        """
        ...

    async def carded(self, shelf: ItemOwner) -> Change:
        """What makes the card anew from the items there are."""
        ...


Action = Literal["deleted", "source_removed", "restored", "rolled_back"]


class Forgotten(msgspec.Struct, frozen=True):
    """One thing that was forgotten, or that changed because of it.  ``text`` is what it says."""

    id: str
    kind: str
    action: Action
    text: str


def anything(held: object) -> None:
    """The check of a change that is meant whatever there is."""


class Collection:
    """All methods raise StoreError.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.  ``turns`` are those of all that
    change the same shelves.
    """

    def __init__(
        self,
        items: Items,
        count: Callable[[str], int],
        clock: Callable[[], float],
        turns: Turns | None = None,
    ) -> None:
        self._items, self._count, self.clock = items, count, clock
        self._turns = Turns() if turns is None else turns

    async def update(self, shelf: ItemOwner, step: Step[T], since: float | None = None) -> T:
        """See ``update`` below."""
        return await update(self._items, self._turns, shelf, step, since)

    async def at(self, shelf: ItemOwner, place: Place) -> Item | None:
        return (await self._items.items_at(shelf, [place])).get(place)

    async def read(self, shelf: ItemOwner, place: Place, nothing: StructT) -> Stored[StructT]:
        """The value at a place, ``nothing`` where there is none."""
        item = await self.at(shelf, place)
        return stored(item, type(nothing)) if item else Stored(nothing)

    async def page(
        self, shelf: ItemOwner, where: Namespace, after: str | None, limit: int, kind: type[StructT]
    ) -> Page[StructT]:
        """Values by key, ascending, behind the key ``after``; the page's ``after`` is a key."""
        start = Place(where, after) if after is not None else None
        page = await self._items.items(shelf, where, start, limit)
        values = tuple(msgspec.json.decode(item.value, type=kind) for item in page.items)
        return Page(values, page.items[-1].key if page.after is not None else None)


async def update(
    items: Items, turns: Turns, shelf: ItemOwner, step: Step[T], since: float | None = None
) -> T:
    """Make the changes of a step, which is done anew while others are in its way.

    What they are made from was read at ``since``: see Items.change_items.  Raises StoreError, Busy,
    and what the step raises.
    """
    async with turns.turn(shelf):
        for _ in range(ATTEMPTS):
            result, changes = await step()
            if not changes or await items.change_items(shelf, changes, since):
                return result
    raise Busy


def stored(item: Item, kind: type[StructT]) -> Stored[StructT]:
    """What lies there, read."""
    value = msgspec.json.decode(item.value, type=kind)
    return Stored(value, item.version, item.created_at, item.updated_at)


def putting(
    place: Place, value: msgspec.Struct, after: int | None, expires_at: float | None = None
) -> Change:
    """What puts a value, if there is still this version of what was there before."""
    return Change(
        namespace=place.namespace,
        key=place.key,
        value=msgspec.json.encode(value),
        after=after,
        expires_at=expires_at,
    )


def dropping(place: Place, after: int | None = None) -> Change:
    """What deletes an item, with ``after`` only this version of it."""
    return Change(namespace=place.namespace, key=place.key, value=None, after=after)
