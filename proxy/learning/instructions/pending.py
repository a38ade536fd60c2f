"""Feedback that waits for a proposal, and how what is erased goes from it."""

from __future__ import annotations

from collections.abc import Collection as Many
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import (
    Busy,
    Collection,
    Stored,
    decode_item,
    delete_change,
    put_change,
)
from proxy.learning.feedback import UNOWNED_FEEDBACK, Feedback
from proxy.learning.instructions.document import (
    MOST_PENDING,
    PENDING,
    FeedbackSource,
    IsAffected,
    Reflection,
    namespace,
    pending_place,
    reflection_place,
)
from proxy.learning.instructions.store import InstructionStore
from proxy.memory.items import INSTRUCTIONS, Change, Item, ItemOwner, Items, namespace_pages
from proxy.memory.model import SessionKey

Waiting = Stored[Reflection]
"""When there is to be a proposal."""


class PendingFeedback(Collection):
    """The methods that change something also raise Busy.  Each ``owner`` is a tenant itself."""

    async def waiting(self, owner: ItemOwner, application: str) -> Waiting:
        return await self.read(owner, reflection_place(application), Reflection())

    async def pending(
        self, owner: ItemOwner, application: str
    ) -> Sequence[tuple[Item, FeedbackSource]]:
        """All that waits, the newest first."""
        where = namespace(application, PENDING)
        page = await self._items.items(owner, where, None, MOST_PENDING)
        found = [
            (item, msgspec.json.decode(item.value, type=FeedbackSource)) for item in page.items
        ]
        return sorted(found, key=lambda pair: pair[1].at, reverse=True)

    async def note(self, owner: ItemOwner, application: str, user: str, feedback: Feedback) -> None:
        """Let a piece of feedback wait; of the same message it waits once."""
        place = pending_place(application, feedback.session, feedback.message)
        session, message, at = feedback.session, feedback.message, feedback.created_at
        given = FeedbackSource(user=user, session=session, message=message, at=at)

        counted = reflection_place(application)

        async def step() -> tuple[None, Sequence[Change]]:
            found = await self._items.items_at(owner, [place, counted])
            held, old = _decode_reflection(found.get(counted)), found.get(place)
            if old is None and held.value.waiting >= MOST_PENDING:
                return None, ()
            then = replace(held.value, waiting=held.value.waiting + (old is None))
            return None, [
                put_change(place, given, old.version if old else 0),
                _put_reflection(application, then, held),
            ]

        await self.update(owner, step)

    async def ask(self, owner: ItemOwner, application: str) -> FeedbackSource | None:
        """Want a proposal now: the newest feedback there is for it, None if there is none."""

        async def step() -> tuple[FeedbackSource | None, Sequence[Change]]:
            held = await self.waiting(owner, application)
            pending = await self.pending(owner, application)
            if not pending:
                return None, ()
            then = replace(held.value, asked=True)
            return pending[0][1], [_put_reflection(application, then, held)]

        return await self.update(owner, step)

    async def tried(self, owner: ItemOwner, application: str) -> bool:
        """Wait for as much feedback again before the next attempt.  False: not done."""
        held = await self.waiting(owner, application)
        then = Reflection(waiting=held.value.waiting, tried=held.value.waiting)
        return await self._items.change_items(owner, [_put_reflection(application, then, held)])

    async def done(
        self, owner: ItemOwner, application: str, pending: Sequence[Item], changes: Sequence[Change]
    ) -> bool:
        """Make changes that come of feedback, which waits no longer; what was said anew stays.

        Nothing is changed if others have made theirs of all of it.  False: to be tried again, as if
        some of it is gone: who said it may have been erased, and the changes tell of it.
        """
        places = [item.place for item in pending]

        async def step() -> tuple[bool, Sequence[Change]]:
            held = await self.waiting(owner, application)
            found = await self._items.items_at(owner, places)
            now = {place: item.version for place, item in found.items()}
            read = [p for p in pending if now.get(p.place) == p.version]
            if found and len(found) < len(pending):
                return False, ()
            if not read:
                return True, ()
            then = Reflection(waiting=max(0, held.value.waiting - len(read)))
            leaving = [delete_change(item.place, item.version) for item in read]
            return True, [*leaving, _put_reflection(application, then, held), *changes]

        try:
            return await self.update(owner, step)
        except Busy:
            return False

    async def drop(self, owner: ItemOwner, application: str, is_affected: IsAffected) -> int:
        """Let nothing wait any more that is theirs; how many pieces it was."""

        async def step() -> tuple[int, Sequence[Change]]:
            held = await self.waiting(owner, application)
            pending = await self.pending(owner, application)
            gone = [item for item, given in pending if is_affected(given)]
            if not gone:
                return 0, ()
            then = replace(held.value, waiting=len(pending) - len(gone))
            leaving = [delete_change(item.place, item.version) for item in gone]
            return len(gone), [*leaving, _put_reflection(application, then, held)]

        return await self.update(owner, step)


def _put_reflection(application: str, then: Reflection, held: Waiting) -> Change:
    return put_change(reflection_place(application), then, held.version)


def _decode_reflection(item: Item | None) -> Waiting:
    return decode_item(item, Reflection) if item else Stored(Reflection())


class FeedbackForgetter(msgspec.Struct, frozen=True):
    """A text in force stays, whatever it was made of: it is the application's.

    What gives a number gives that of the proposals, with ``dry_run`` of those that would be
    dropped.  All methods raise StoreError, and Busy.
    """

    items: Items
    pending: PendingFeedback
    instructions: InstructionStore

    async def person(
        self, tenant: str, user: str, sessions: Many[str] = (), *, dry_run: bool = False
    ) -> int:
        """Drop what is made of anything that a person gave, or of feedback on these sessions."""
        return await self._forget(
            tenant, lambda given: given.user == user or given.session in sessions, dry_run
        )

    async def session(
        self, key: SessionKey, message: str | None = None, *, dry_run: bool = False
    ) -> int:
        """Drop what is made of feedback on a session, or on one message of it."""
        return await self._forget(
            key.tenant,
            lambda given: given.session == key.session and message in (None, given.message),
            dry_run,
        )

    async def judged(self, key: SessionKey) -> set[str]:
        """The messages of a session that something was proposed because of."""
        owner = ItemOwner(key.tenant)
        return {
            given.message
            for application in await self._applications(owner)
            for proposal in (await self.instructions.all_proposals(owner, application)).values()
            for given in proposal.sources
            if given.session == key.session
        }

    async def proposed(self, key: SessionKey, messages: Many[str]) -> None:
        """Drop what was proposed because of these messages; feedback that waits stays."""
        owner = ItemOwner(key.tenant)
        for application in await self._applications(owner):
            await self.instructions.drop_proposals(
                owner,
                application,
                lambda given: given.session == key.session and given.message in messages,
            )

    async def _forget(self, tenant: str, is_affected: IsAffected, dry_run: bool) -> int:
        owner, proposals = ItemOwner(tenant), 0
        for application in await self._applications(owner):
            # First: what is being proposed of it must find that it is gone.
            if not dry_run:
                await self.pending.drop(owner, application, is_affected)
            proposals += await self.instructions.drop_proposals(
                owner, application, is_affected, dry_run=dry_run
            )
        return proposals

    async def _applications(self, owner: ItemOwner) -> set[str]:
        pages = namespace_pages(self.items, owner, (INSTRUCTIONS,))
        found = [name async for page in pages for _, *labels in page for name in labels[:1]]
        return set(found) - {UNOWNED_FEEDBACK}
