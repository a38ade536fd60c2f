"""Items: JSON values under a namespace and a key, filters over them, and the contract of their
store.

The model is that of LangGraph's store: a namespace is a tuple of labels.  Learned memory (facts,
profiles, episodes) and read marks are items too.  Each item has an *owner*, a person or the tenant
itself; changes of one owner's items are atomic.

Filters are those of LangGraph's store: {"field": condition}, nested as the value is.  A condition
is a value that the field must equal, or operators that must all hold.  A missing field is null.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from math import isnan
from typing import NamedTuple, Protocol

import msgspec

from proxy.memory.archive import Page


def check_filter(wanted: object) -> None:
    """Raise ValueError for an unknown operator, which it names."""
    if isinstance(wanted, list):
        for each in wanted:
            check_filter(each)
    if isinstance(wanted, dict):
        unknown = sorted(wanted.keys() - OPERATORS.keys()) if _has_operators(wanted) else []
        if unknown:
            raise ValueError(f"{unknown[0]} is not one of: {', '.join(OPERATORS)}")
        for each in wanted.values() if not _has_operators(wanted) else ():
            check_filter(each)


def matches_filter(value: object, wanted: object) -> bool:
    """Whether a value matches a filter that passed ``check_filter``."""
    if isinstance(wanted, dict):
        if _has_operators(wanted):
            return all(OPERATORS[name](value, bound) for name, bound in wanted.items())
        return isinstance(value, dict) and all(
            matches_filter(value.get(name), each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(matches_filter(*pair) for pair in zip(value, wanted, strict=True))
        )
    return _equal(value, wanted)


def _has_operators(wanted: Mapping[str, object]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _equal(value: object, other: object) -> bool:
    """Equality of JSON values: other than in Python, true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _compare(value: object, other: object) -> int | None:
    """-1, 0, 1: less, equal, greater; None if they cannot be compared.

    Numbers, and texts that are numbers, are compared by size, other texts as texts.
    """
    mine, its = _number(value), _number(other)
    if mine is not None and its is not None:
        return (mine > its) - (mine < its)
    if isinstance(value, str) and isinstance(other, str):
        return (value > other) - (value < other)
    return None


def _number(value: object) -> float | None:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, other: not _equal(value, other),
    "$gt": lambda value, other: _compare(value, other) == 1,
    "$gte": lambda value, other: _compare(value, other) in (0, 1),
    "$lt": lambda value, other: _compare(value, other) == -1,
    "$lte": lambda value, other: _compare(value, other) in (-1, 0),
}


Namespace = tuple[str, ...]

PEOPLE = "users"
"""The first label of what belongs to a person; the second is the person's id."""

INSTRUCTIONS = "instructions"
"""The first label of instructions, which belong to a tenant."""

REQUESTS = "requests"
"""The label of fingerprints of requests to the memory API that came with an Idempotency-Key."""


class ItemOwner(NamedTuple):
    """Who owns items: a person, or with ``user`` "" the tenant itself."""

    tenant: str
    user: str = ""


class Place(NamedTuple):
    """Where an item is.  Labels and keys have no control characters; labels are not empty."""

    namespace: Namespace
    key: str


class OwnedPlace(NamedTuple):
    """Whose item it is, and its place among that owner's."""

    owner: ItemOwner
    place: Place


def item_owner_of(tenant: str, namespace: Namespace) -> ItemOwner:
    """The owner of a namespace's items.  A namespace of people must name the person."""
    if namespace[:1] != (PEOPLE,):
        return ItemOwner(tenant)
    return ItemOwner(tenant, namespace[1])


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A value (a JSON object) at its place.

    ``version`` is 1 when it is first put, and grows by 1 with each change.  Times are Unix seconds;
    after ``expires_at`` (None: never) the item does not exist any more.
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

    async def items_at(self, owner: ItemOwner, places: Collection[Place]) -> dict[Place, Item]:
        """The items at these places, in one round trip, without those that do not exist."""
        ...

    async def items_of(self, places: Collection[OwnedPlace]) -> dict[OwnedPlace, Item]:
        """The same for places of several owners, also in one round trip."""
        ...

    async def items(
        self, owner: ItemOwner, prefix: Namespace, after: Place | None, limit: int
    ) -> Page[Item]:
        """The items whose namespace begins with ``prefix``, by namespace and key, ascending.

        They begin after ``after``; the page's ``after`` is not None if there are more.
        """
        ...

    async def namespaces(
        self, owner: ItemOwner, prefix: Namespace, after: Namespace | None, limit: int
    ) -> Sequence[Namespace]:
        """The namespaces below a prefix that have items, ascending, beginning after ``after``.

        If there are fewer than ``limit``, these are the last ones.
        """
        ...

    async def people(self, tenant: str) -> Sequence[str]:
        """The users who have items, sorted; may include some whose items have expired.

        May scan the whole store: not for requests.
        """
        ...

    async def change_items(
        self, owner: ItemOwner, changes: Sequence[Change], since: float | None = None
    ) -> bool:
        """Make all changes; or none, and return False, if any item has another version than its
        change requires.

        No place is changed twice in one call.  The changes are made from what was read at
        ``since``: also False if the owner was erased then or later.
        """
        ...

    async def adopt_items(
        self, owner: ItemOwner, items: Sequence[Item], since: float | None = None
    ) -> int:
        """Put items, with their versions and times, at places that are free; how many were put.

        None is put if the owner was erased at ``since`` (when the import began) or later.
        """
        ...

    async def drop_items(self, owner: ItemOwner, prefix: Namespace) -> int:
        """Delete all items whose namespace begins with ``prefix``; how many there were."""
        ...


NAMESPACES_AT_ONCE = 250
"""Namespaces on a page: each is a look-up of its own."""


async def namespace_pages(
    items: Items, owner: ItemOwner, prefix: Namespace
) -> AsyncIterator[Sequence[Namespace]]:
    """All namespaces below a prefix that have items, in pages.  Raises StoreError."""
    after: Namespace | None = None
    while True:
        page = await items.namespaces(owner, prefix, after, NAMESPACES_AT_ONCE)
        yield page
        if len(page) < NAMESPACES_AT_ONCE:
            return
        after = page[-1]


async def item_pages(
    items: Items, owner: ItemOwner, prefix: Namespace, at_once: int
) -> AsyncIterator[Sequence[Item]]:
    """All items whose namespace begins with ``prefix``, in pages.  Raises StoreError."""
    after: Place | None = None
    while True:
        page = await items.items(owner, prefix, after, at_once)
        yield page.items
        if page.after is None:
            return
        after = page.items[-1].place


async def all_items(
    items: Items, owner: ItemOwner, prefix: Namespace, at_once: int
) -> AsyncIterator[Item]:
    """All items whose namespace begins with ``prefix``, one by one.  Raises StoreError."""
    async for page in item_pages(items, owner, prefix, at_once):
        for item in page:
            yield item
