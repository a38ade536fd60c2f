"""Taking a session, or one exchange of it, out of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from proxy.learning.forgetting import ATTEMPTS, Busy, Forgotten
from proxy.learning.profile import MOST_VERSIONS, Profile, Version, version_place
from proxy.learning.profile_patch import Operation
from proxy.learning.profile_replay import replayed
from proxy.learning.profile_shelf import Held, ProfileShelf, version_in
from proxy.memory.items import Change, Item, Items, Shelf


class ProfileForgetting:
    """See :class:`proxy.learning.forgetting.Part`.  Raises Busy as well."""

    def __init__(self, items: Items, profiles: ProfileShelf) -> None:
        self._items, self._profiles = items, profiles

    async def forget(
        self, shelf: Shelf, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        """Undo what was learned there; the other versions are carried out again without it."""
        for _ in range(ATTEMPTS):
            held = await self._profiles.current(shelf)
            if not held.profile.kept:
                return []
            stored = await self._stored(shelf)
            before = [version_in(item) for item in stored]
            left = replayed(before, lambda source: source.within(session, exchange))
            told = list(_told(before, left))
            if dry_run or not told:
                return told
            changes = self._changes(shelf, held, stored, left)
            if await self._items.change_items(shelf, changes):
                return told
        raise Busy

    async def _stored(self, shelf: Shelf) -> Sequence[Item]:
        namespace = version_place(shelf.user, 0).namespace
        return (await self._items.items(shelf, namespace, None, MOST_VERSIONS + 1)).items

    def _changes(
        self, shelf: Shelf, held: Held, stored: Sequence[Item], left: Sequence[Version]
    ) -> list[Change]:
        values = {version.version: msgspec.json.encode(version) for version in left}
        changes = [
            Change(
                namespace=item.namespace,
                key=item.key,
                value=values.get(int(item.key)),
                after=item.version,
            )
            for item in stored
            if bytes(item.value) != values.get(int(item.key))
        ]
        newest = left[-1] if left else Version(version=0, document={})
        profile = Profile(
            document=newest.document,
            version=newest.version,
            last=held.profile.last,
            kept=tuple(version.version for version in left),
        )
        return [*self._profiles.becoming(shelf, profile, held.stored), *changes]


def _told(before: Sequence[Version], left: Sequence[Version]) -> Iterator[Forgotten]:
    """The versions that are not there any more, or have lost a part."""
    now = {version.version: version for version in left}
    for version in before:
        then = now.get(version.version)
        if then is None or (then.patch, then.before) != (version.patch, version.before):
            name = f"profile_{version.version}"
            yield Forgotten(name, "profile", "rolled_back", _text(version))


def _text(version: Version) -> str:
    """What a version changed, on one line."""
    return "; ".join(_change(operation) for operation in version.patch)


def _change(operation: Operation) -> str:
    told = f"{operation['op']} {operation['path']}"
    if "value" not in operation:
        return told
    return f"{told}: {msgspec.json.encode(operation['value']).decode()}"
