"""Forgetting what was learned from a session, or from one exchange of it.

What others taught as well stays, without that source.  Nothing is learned of it again: what was
read stays read, and what was said but not read yet is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from proxy.learning.lesson import Mark, mark_of, mark_place
from proxy.memory.archive import Session
from proxy.memory.items import Change, Items, Shelf
from proxy.memory.model import Ask, SessionKey, Snapshot
from proxy.memory.reading import NEWEST_TURN

Action = Literal["deleted", "source_removed", "restored", "rolled_back"]

ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One thing that was forgotten, or that changed because of it.  ``text`` is what it says."""

    id: str
    kind: str
    action: Action
    text: str


class Part(Protocol):
    """Forgets one kind of what is learned."""

    async def forget(
        self, shelf: Shelf, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        """Take a session, or one exchange of it, out of all that a person's shelf holds.

        What it did, or with ``dry_run`` would do.  Raises StoreError.
        """
        ...


class Sessions(Protocol):
    """Implemented by every store.  All methods raise StoreError."""

    async def session(self, key: SessionKey) -> Session | None: ...

    async def load(self, key: SessionKey, ask: Ask) -> Snapshot: ...


class Busy(Exception):
    """Others have changed the same again and again: nothing was done."""


def anything(held: object) -> None:
    """The check of a change that is meant whatever there is."""


class Forgetting:
    """``features`` are those of all students that read sessions."""

    def __init__(
        self, items: Items, sessions: Sessions, features: Sequence[str], parts: Sequence[Part]
    ) -> None:
        self._items, self._sessions = items, sessions
        self._features, self._parts = tuple(features), tuple(parts)

    async def forget(
        self, shelf: Shelf, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        """Raises StoreError, and Busy."""
        if not dry_run:  # first: who has read and not yet stored what was learned must not store it
            await self._turn_away(shelf, session, exchange)
        found: list[Forgotten] = []
        for part in self._parts:
            found += await part.forget(shelf, session, exchange, dry_run)
        return found

    async def _turn_away(self, shelf: Shelf, session: str, exchange: str | None) -> None:
        for _ in range(ATTEMPTS):
            if await self._items.change_items(shelf, await self._marks(shelf, session, exchange)):
                return
        raise Busy

    async def _marks(self, shelf: Shelf, session: str, exchange: str | None) -> list[Change]:
        """The marks of all features, each put anew: a lesson that began before does not fit."""
        key = SessionKey(shelf.tenant, session)
        found, newest = (
            await self._sessions.session(key),
            await self._sessions.load(key, NEWEST_TURN),
        )
        began = found.created_at if found else 0.0
        last = max((entry.position.seq for entry in newest.log), default=0)
        places = [mark_place(shelf.user, feature, session) for feature in self._features]
        held = await self._items.items_at(shelf, places)
        return [
            Change(
                namespace=place.namespace,
                key=place.key,
                value=msgspec.json.encode(
                    _passing_over(mark_of(held.get(place), began), last, exchange)
                ),
                after=held[place].version if place in held else 0,
            )
            for place in places
        ]


def _passing_over(mark: Mark, last: int, exchange: str | None) -> Mark:
    """A mark behind which the exchange, or all messages up to seq ``last``, are passed over."""
    if exchange is not None:
        return replace(mark, without=(*mark.without, exchange))
    return replace(mark, seq=max(mark.seq, last), message="", offset=0)
