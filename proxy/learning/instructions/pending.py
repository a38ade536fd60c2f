"""Feedback that waits for a proposal, and its erasure."""

from __future__ import annotations

from collections.abc import Collection as Many
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import Busy, Collection, Stored, delete_change, put_change, stored_or
from proxy.learning.feedback import UNOWNED_FEEDBACK, Feedback
from proxy.learning.instructions.document import (
    MAX_PENDING,
    PENDING,
    FeedbackSource,
    IsAffected,
    Reflection,
    namespace,
    pending_place,
    reflection_place,
)
from proxy.learning.instructions.store import InstructionStore
from proxy.memory.items import INSTRUCTIONS, Change, Item, ItemOwner, namespace_pages
from proxy.memory.model import SessionKey

StoredReflection = Stored[Reflection]
"""When the next proposal is due."""


class PendingFeedback(Collection):
    """The methods that change something also raise Busy.  Each ``owner`` is a tenant itself."""

    async def reflection(self, owner: ItemOwner, application: str) -> StoredReflection:
        return await self.read(owner, reflection_place(application), Reflection())

    async def entries(
        self, owner: ItemOwner, application: str
    ) -> Sequence[tuple[Item, FeedbackSource]]:
        """All that is pending, the newest first."""
        where = namespace(application, PENDING)
        page = await self.items.items(owner, where, None, MAX_PENDING)
        found = [
            (item, msgspec.json.decode(item.value, type=FeedbackSource)) for item in page.items
        ]
        return sorted(found, key=lambda pair: pair[1].at, reverse=True)

    async def add(self, owner: ItemOwner, application: str, user: str, feedback: Feedback) -> None:
        """Add a piece of feedback, in place of an earlier one on the same message."""
        place = pending_place(application, feedback.session, feedback.message)
        session, message, at = feedback.session, feedback.message, feedback.created_at
        given = FeedbackSource(user=user, session=session, message=message, at=at)
        counted = reflection_place(application)

        async def step() -> tuple[None, Sequence[Change]]:
            found = await self.items.items_at(owner, [place, counted])
            stored, old = stored_or(Reflection(), found.get(counted)), found.get(place)
            if old is None and stored.value.waiting >= MAX_PENDING:
                return None, ()
            then = replace(stored.value, waiting=stored.value.waiting + (old is None))
            return None, [
                put_change(place, given, old.version if old else 0),
                _put_reflection(application, then, stored),
            ]

        await self.update(owner, step)

    async def request_proposal(self, owner: ItemOwner, application: str) -> FeedbackSource | None:
        """Make a proposal due now; returns the newest pending feedback, None if there is none."""

        async def step() -> tuple[FeedbackSource | None, Sequence[Change]]:
            stored = await self.reflection(owner, application)
            pending = await self.entries(owner, application)
            if not pending:
                return None, ()
            then = replace(stored.value, asked=True)
            return pending[0][1], [_put_reflection(application, then, stored)]

        return await self.update(owner, step)

    async def mark_tried(self, owner: ItemOwner, application: str) -> bool:
        """Note a failed attempt: the next one waits for as much new feedback.  False: not done."""
        stored = await self.reflection(owner, application)
        then = Reflection(waiting=stored.value.waiting, tried=stored.value.waiting)
        return await self.items.change_items(owner, [_put_reflection(application, then, stored)])

    async def apply(
        self, owner: ItemOwner, application: str, pending: Sequence[Item], changes: Sequence[Change]
    ) -> bool:
        """Make the ``changes`` that were computed from ``pending``, and remove that feedback,
        except what was changed since.

        Nothing is changed if another process has applied all of it.  False: try again, for example
        if some of it is gone, as its user may have been erased and the changes may quote it.
        """
        places = [item.place for item in pending]

        async def step() -> tuple[bool, Sequence[Change]]:
            stored = await self.reflection(owner, application)
            found = await self.items.items_at(owner, places)
            now = {place: item.version for place, item in found.items()}
            read = [p for p in pending if now.get(p.place) == p.version]
            if found and len(found) < len(pending):
                return False, ()
            if not read:
                return True, ()
            then = Reflection(waiting=max(0, stored.value.waiting - len(read)))
            leaving = [delete_change(item.place, item.version) for item in read]
            return True, [*leaving, _put_reflection(application, then, stored), *changes]

        try:
            return await self.update(owner, step)
        except Busy:
            return False

    async def discard(self, owner: ItemOwner, application: str, is_affected: IsAffected) -> int:
        """Remove pending feedback that ``is_affected``; returns how many pieces."""

        async def step() -> tuple[int, Sequence[Change]]:
            stored = await self.reflection(owner, application)
            pending = await self.entries(owner, application)
            gone = [item for item, given in pending if is_affected(given)]
            if not gone:
                return 0, ()
            then = replace(stored.value, waiting=len(pending) - len(gone))
            leaving = [delete_change(item.place, item.version) for item in gone]
            return len(gone), [*leaving, _put_reflection(application, then, stored)]

        return await self.update(owner, step)


def _put_reflection(application: str, then: Reflection, stored: StoredReflection) -> Change:
    return put_change(reflection_place(application), then, stored.version)


class FeedbackForgetter(msgspec.Struct, frozen=True):
    """Erases pending feedback and the proposals made from it.

    The current instructions stay: they belong to the application.  Methods that return a number
    count proposals, with ``dry_run`` those that would be dropped.  All methods raise StoreError
    and Busy.
    """

    pending: PendingFeedback
    instructions: InstructionStore

    async def forget_person(
        self, tenant: str, user: str, sessions: Many[str] = (), *, dry_run: bool = False
    ) -> int:
        """Drop what comes from a person's feedback, or from feedback on these sessions."""
        return await self._forget(
            tenant, lambda given: given.user == user or given.session in sessions, dry_run
        )

    async def forget_session(
        self, key: SessionKey, message: str | None = None, *, dry_run: bool = False
    ) -> int:
        """Drop what comes from feedback on a session, or on one message of it."""
        return await self._forget(
            key.tenant,
            lambda given: given.session == key.session and message in (None, given.message),
            dry_run,
        )

    async def messages_with_proposals(self, key: SessionKey) -> set[str]:
        """The messages of a session whose feedback led to proposals."""
        owner = ItemOwner(key.tenant)
        return {
            given.message
            for application in await self._applications(owner)
            for proposal in (await self.instructions.all_proposals(owner, application)).values()
            for given in proposal.sources
            if given.session == key.session
        }

    async def drop_proposals(self, key: SessionKey, messages: Many[str]) -> None:
        """Drop the proposals made from feedback on these messages; pending feedback stays."""
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
            # First, so that a proposal that is being made from it finds that it is gone.
            if not dry_run:
                await self.pending.discard(owner, application, is_affected)
            proposals += await self.instructions.drop_proposals(
                owner, application, is_affected, dry_run=dry_run
            )
        return proposals

    async def _applications(self, owner: ItemOwner) -> set[str]:
        pages = namespace_pages(self.pending.items, owner, (INSTRUCTIONS,))
        found = [name async for page in pages for _, *labels in page for name in labels[:1]]
        return set(found) - {UNOWNED_FEEDBACK}
