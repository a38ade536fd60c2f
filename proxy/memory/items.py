"""Items: JSON values under a namespace and a key, and the contract of where they are kept.

The model is that of LangGraph's store: a namespace is a tuple of labels.  What is learned of people
is made of items too: facts, profiles, episodes, and the marks that say how far was read.  A *shelf*
holds the items of one person, or those of a tenant that are nobody's in particular; changes to one
shelf are atomic.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple, Protocol

import msgspec

from proxy.memory.archive import Page

Namespace = tuple[str, ...]

PEOPLE = "users"
"""The first label of what belongs to a person; the second is the person's id."""

RESERVED = frozenset({"facts", "profile", "profiles", "episodes", "learned", "card", "feedback"})
"""Third labels of people's namespaces that hold what the proxy itself has learned of them."""

INSTRUCTIONS = "instructions"
"""The first label of what the proxy itself has learned about how to answer."""

REQUESTS = "requests"
"""The label of fingerprints of requests to the memory API that came with an Idempotency-Key."""


class Shelf(NamedTuple):
    """Whose items: a person's, or with ``user`` "" the tenant's own."""

    tenant: str
    user: str = ""


class Place(NamedTuple):
    """Where an item is.  Labels and keys hold no control characters; labels are not empty."""

    namespace: Namespace
    key: str


def shelf_of(tenant: str, namespace: Namespace) -> Shelf:
    """Where the items of a namespace lie; one of people must name the person."""
    if namespace[:1] != (PEOPLE,):
        return Shelf(tenant)
    return Shelf(tenant, namespace[1])


def is_reserved(namespace: Namespace) -> bool:
    """Whether only the proxy itself writes here."""
    if namespace[:1] == (PEOPLE,):
        return bool(RESERVED.intersection(namespace[2:3]))
    return namespace[:1] in ((INSTRUCTIONS,), (REQUESTS,))


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A value (a JSON object) at its place.

    ``version`` is 1 when it is put for the first time, and one more with each change.  Times are
    Unix seconds; after ``expires_at`` (None: never) it is not there any more.
    """

    namespace: Namespace
    key: str
    value: msgspec.Raw
    version: int
    created_at: float
    updated_at: float
    expires_at: float | None = None

    @property
    def place(self) -> Place:
        return Place(self.namespace, self.key)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An item is put, or, with ``value`` None, deleted.

    ``after`` is the version that it must have (0: it must not exist; None: whatever it has).
    """

    namespace: Namespace
    key: str
    value: bytes | None
    after: int | None = None
    expires_at: float | None = None


class Items(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def items_at(self, shelf: Shelf, places: Collection[Place]) -> dict[Place, Item]:
        """The items at these places, in one round trip; those that are not there are left out."""
        ...

    async def items(
        self, shelf: Shelf, prefix: Namespace, after: Place | None, limit: int
    ) -> Page[Item]:
        """The items whose namespace begins with ``prefix``, by namespace and key, ascending.

        They begin behind ``after``; the page's ``after`` is not None where there are more.
        """
        ...

    async def namespaces(self, shelf: Shelf, prefix: Namespace) -> Sequence[Namespace]:
        """The namespaces below a prefix that have items, ascending."""
        ...

    async def people(self, tenant: str) -> Sequence[str]:
        """Those who have items, sorted; with time they may be some whose items have expired.

        May go through the whole store: not for what somebody waits for.
        """
        ...

    async def change_items(
        self, shelf: Shelf, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        """Make all changes, or, if one of them finds another version than it must, none: False.

        No place is changed twice in one call.  ``since`` is when that was read which they are made
        from: False too if the shelf's person was erased then or later.
        """
        ...

    async def adopt_items(self, shelf: Shelf, items: Sequence[Item]) -> int:
        """Put items where there are none, versions and times as they are; how many were put."""
        ...

    async def drop_items(self, shelf: Shelf, prefix: Namespace) -> int:
        """Delete all items whose namespace begins with ``prefix``; how many there were."""
        ...


async def item_pages(
    items: Items, shelf: Shelf, prefix: Namespace, at_once: int
) -> AsyncIterator[Sequence[Item]]:
    """All items whose namespace begins with ``prefix``, so many together.  Raises StoreError."""
    after: Place | None = None
    while True:
        page = await items.items(shelf, prefix, after, at_once)
        yield page.items
        if page.after is None:
            return
        after = page.items[-1].place


async def all_items(
    items: Items, shelf: Shelf, prefix: Namespace, at_once: int
) -> AsyncIterator[Item]:
    """The same, one by one."""
    async for page in item_pages(items, shelf, prefix, at_once):
        for item in page:
            yield item
