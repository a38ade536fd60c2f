"""Where a person's profile is kept: read, edited, put back to an earlier version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from proxy.learning.fact_card import card_place
from proxy.learning.forgetting import ATTEMPTS, Busy, anything
from proxy.learning.profile import (
    FEATURE,
    MOST_VERSIONS,
    Profile,
    Version,
    profile_place,
    version_place,
)
from proxy.learning.profile_lines import card
from proxy.learning.profile_patch import Document, Operation, applied, differences, same
from proxy.learning.profile_replay import folded
from proxy.learning.profile_schema import Schema
from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, Items, Place, Shelf

Patching = Callable[[Document], Sequence[object]]
"""Makes the patch of an edit from the current document."""

_ALWAYS_THERE = 2
"""Versions that are folded into one, so that there are at least as many."""


@dataclass(frozen=True, slots=True)
class Held:
    """A profile as it lies on its shelf; ``stored`` is the version of its item, 0 without one."""

    profile: Profile = Profile()
    stored: int = 0
    updated_at: float | None = None


Check = Callable[[Held], None]
"""Raises where a profile is not what a change is meant for."""


class NoVersion(LookupError):
    """There is no such version of this profile, or not any more."""


class ProfileShelf:
    """All methods raise StoreError.

    ``count`` gives the tokens of a text, ``clock`` Unix seconds.
    """

    def __init__(
        self, items: Items, count: Callable[[str], int], clock: Callable[[], float]
    ) -> None:
        self._items, self._count, self._time = items, count, clock

    async def current(self, shelf: Shelf) -> Held:
        place = profile_place(shelf.user)
        item = (await self._items.items_at(shelf, [place])).get(place)
        return _held(item) if item else Held()

    async def versions(self, shelf: Shelf, after: int, limit: int) -> Page[Version]:
        """By number, ascending, behind ``after``."""
        start = version_place(shelf.user, after)
        page = await self._items.items(shelf, start.namespace, start, limit)
        found = tuple(map(version_in, page.items))
        return Page(found, str(found[-1].version) if page.after is not None else None)

    async def edit(
        self, shelf: Shelf, patching: Patching, schema: Schema, check: Check = anything
    ) -> Held:
        """A person's change; as it is afterwards.  Raises PatchError, and Busy."""
        for _ in range(ATTEMPTS):
            held = await self.current(shelf)
            check(held)
            patch = patching(held.profile.document)
            document = changed(held.profile.document, patch, schema)
            if same(document, held.profile.document):
                return held
            version = Version(
                version=held.profile.last + 1,
                document=document,
                patch=msgspec.convert(patch, tuple[Operation, ...]),
                origin="edited",
                created_at=self._time(),
            )
            if await self._items.change_items(shelf, await self.changes(shelf, held, version)):
                return await self.current(shelf)
        raise Busy

    async def roll_back(self, shelf: Shelf, number: int, check: Check = anything) -> Held:
        """Make an earlier version the current one again.  Raises NoVersion, and Busy."""
        for _ in range(ATTEMPTS):
            held = await self.current(shelf)
            check(held)
            places = [version_place(shelf.user, each) for each in held.profile.kept]
            found = await self._items.items_at(shelf, places)
            until = [version_in(found[place]) for place in places if place in found]
            until = [version for version in until if version.version <= number]
            if not until or until[-1].version != number:
                raise NoVersion
            version = self._repeating(until, held.profile)
            if await self._items.change_items(shelf, await self.changes(shelf, held, version)):
                return await self.current(shelf)
        raise Busy

    async def changes(self, shelf: Shelf, held: Held, version: Version) -> list[Change]:
        """What makes this version the current one, if it is still what ``held`` says."""
        kept = (*held.profile.kept, version.version)
        places = [version_place(shelf.user, each) for each in kept]
        oldest = places[:_ALWAYS_THERE] if len(kept) > MOST_VERSIONS else []
        found = await self._items.items_at(shelf, oldest) if oldest else {}
        changes = [_putting(places[-1], version, 0)]
        if oldest and all(place in found for place in oldest):
            kept = kept[1:]
            both = folded(version_in(found[oldest[0]]), version_in(found[oldest[1]]))
            changes.append(Change(namespace=oldest[0].namespace, key=oldest[0].key, value=None))
            changes.append(_putting(oldest[1], both, found[oldest[1]].version))
        number = version.version
        profile = Profile(document=version.document, version=number, last=number, kept=kept)
        return [*self.becoming(shelf, profile, held.stored), *changes]

    def becoming(self, shelf: Shelf, profile: Profile, stored: int) -> list[Change]:
        """The current one and its card; ``stored``: the version of the item that it takes over."""
        where, beside = profile_place(shelf.user), card_place(shelf.user, FEATURE)
        lines = card(profile.document, self._count)
        return [
            _putting(where, profile, stored),
            Change(namespace=beside.namespace, key=beside.key, value=lines),
        ]

    def _repeating(self, until: Sequence[Version], profile: Profile) -> Version:
        """The last of some versions once more, and where all of them are from."""
        again = until[-1]
        sources = (source for version in until for source in version.sources)
        return Version(
            version=profile.last + 1,
            document=again.document,
            patch=tuple(differences(profile.document, again.document)),
            origin="edited",
            sources=tuple(dict.fromkeys(sources)),
            created_at=self._time(),
            rolled_back_to=again.version,
        )


def changed(document: Document, patch: Sequence[object], schema: Schema) -> Document:
    """The document after a patch, if the schema has no fault to find with that.

    Raises PatchError.
    """
    now = applied(document, patch)
    schema.check(document, now)
    return now


def version_in(item: Item) -> Version:
    return msgspec.json.decode(item.value, type=Version)


def _held(item: Item) -> Held:
    profile = msgspec.json.decode(item.value, type=Profile)
    return Held(profile, item.version, item.updated_at)


def _putting(place: Place, value: Profile | Version, after: int) -> Change:
    encoded = msgspec.json.encode(value)
    return Change(namespace=place.namespace, key=place.key, value=encoded, after=after)
