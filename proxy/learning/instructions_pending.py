"""Feedback that waits for a proposal: only where it is, as what it says belongs to the person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from proxy.learning.feedback import Feedback
from proxy.learning.forgetting import ATTEMPTS, Busy
from proxy.learning.instructions import (
    MOST_PENDING,
    Given,
    Reflection,
    Theirs,
    namespace,
    pending_place,
    reflection_place,
)
from proxy.learning.instructions_shelf import putting
from proxy.memory.items import Change, Item, Items, Place, Shelf


@dataclass(frozen=True, slots=True)
class Waiting:
    """When there is to be a proposal, and the version of the item that says so."""

    reflection: Reflection = Reflection()
    stored: int = 0


class PendingFeedback:
    """All methods raise StoreError; those that change something raise Busy as well.

    A shelf is a tenant's own.
    """

    def __init__(self, items: Items) -> None:
        self._items = items

    async def waiting(self, shelf: Shelf, application: str) -> Waiting:
        return _waiting(await self._at(shelf, reflection_place(application)))

    async def pending(self, shelf: Shelf, application: str) -> Sequence[tuple[Item, Given]]:
        """All that waits, the newest first."""
        where = namespace(application, "feedback")
        page = await self._items.items(shelf, where, None, MOST_PENDING)
        found = [(item, msgspec.json.decode(item.value, type=Given)) for item in page.items]
        return sorted(found, key=lambda pair: pair[1].at, reverse=True)

    async def note(self, shelf: Shelf, application: str, user: str, feedback: Feedback) -> None:
        """Let a piece of feedback wait; of the same message it waits once."""
        place = pending_place(application, feedback.session, feedback.message)
        session, message, at = feedback.session, feedback.message, feedback.created_at
        given = Given(user=user, session=session, message=message, at=at)
        for _ in range(ATTEMPTS):
            found = await self._items.items_at(shelf, [place, reflection_place(application)])
            held, old = _waiting(found.get(reflection_place(application))), found.get(place)
            if old is None and held.reflection.waiting >= MOST_PENDING:
                return
            waits = held.reflection.waiting + (old is None)
            then = replace(held.reflection, waiting=waits)
            changes = [
                putting(place, given, old.version if old else 0),
                reflecting(application, then, held.stored),
            ]
            if await self._items.change_items(shelf, changes):
                return
        raise Busy

    async def ask(self, shelf: Shelf, application: str) -> Given | None:
        """Want a proposal now: the newest feedback there is for it, None if there is none."""
        for _ in range(ATTEMPTS):
            held = await self.waiting(shelf, application)
            pending = await self.pending(shelf, application)
            if not pending:
                return None
            then = replace(held.reflection, asked=True)
            if await self._items.change_items(shelf, [reflecting(application, then, held.stored)]):
                return pending[0][1]
        raise Busy

    async def tried(self, shelf: Shelf, application: str) -> bool:
        """Wait for as much feedback again before the next attempt.  False: not done."""
        held = await self.waiting(shelf, application)
        then = Reflection(waiting=held.reflection.waiting, tried=held.reflection.waiting)
        return await self._items.change_items(shelf, [reflecting(application, then, held.stored)])

    async def done(
        self, shelf: Shelf, application: str, pending: Sequence[Item], changes: Sequence[Change]
    ) -> bool:
        """Make changes that come of feedback, which waits no longer; what was said anew stays.

        Nothing is changed if others have made theirs of all of it.  False: to be tried again, as if
        some of it is gone: who said it may have been erased, and the changes tell of it.
        """
        for _ in range(ATTEMPTS):
            held = await self.waiting(shelf, application)
            places = [item.place for item in pending]
            found = await self._items.items_at(shelf, places)
            now = {place: item.version for place, item in found.items()}
            read = [p for p in pending if now.get(p.place) == p.version]
            if found and len(found) < len(pending):
                return False
            if not read:
                return True
            then = Reflection(waiting=max(0, held.reflection.waiting - len(read)))
            leaving = [*map(dropping, read), reflecting(application, then, held.stored)]
            if await self._items.change_items(shelf, [*leaving, *changes]):
                return True
        return False

    async def drop(self, shelf: Shelf, application: str, theirs: Theirs) -> int:
        """Let nothing wait any more that is theirs; how many pieces it was."""
        for _ in range(ATTEMPTS):
            held = await self.waiting(shelf, application)
            pending = await self.pending(shelf, application)
            gone = [item for item, given in pending if theirs(given)]
            if not gone:
                return 0
            then = replace(held.reflection, waiting=len(pending) - len(gone))
            changes = [*map(dropping, gone), reflecting(application, then, held.stored)]
            if await self._items.change_items(shelf, changes):
                return len(gone)
        raise Busy

    async def _at(self, shelf: Shelf, place: Place) -> Item | None:
        return (await self._items.items_at(shelf, [place])).get(place)


def reflecting(application: str, reflection: Reflection, stored: int) -> Change:
    return putting(reflection_place(application), reflection, stored)


def dropping(item: Item) -> Change:
    """What drops an item, if it is still this one."""
    return Change(namespace=item.namespace, key=item.key, value=None, after=item.version)


def _waiting(item: Item | None) -> Waiting:
    if item is None:
        return Waiting()
    return Waiting(msgspec.json.decode(item.value, type=Reflection), item.version)
