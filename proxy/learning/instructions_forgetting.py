"""Of feedback that is erased instructions keep nothing: not where it waits, not what it led to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from proxy.learning.feedback import NOBODYS
from proxy.learning.instructions import Theirs
from proxy.learning.instructions_pending import PendingFeedback
from proxy.learning.instructions_shelf import InstructionShelf
from proxy.memory.items import INSTRUCTIONS, Items, Shelf
from proxy.memory.model import SessionKey


@dataclass(frozen=True, slots=True)
class InstructionsForgetting:
    """A text in force stays, whatever it was made of: it is the application's.

    What gives a number gives that of the proposals, with ``dry_run`` of those that would be
    dropped.  All methods raise StoreError, and Busy.
    """

    items: Items
    pending: PendingFeedback
    instructions: InstructionShelf

    async def person(
        self, tenant: str, user: str, sessions: Collection[str] = (), *, dry_run: bool = False
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
        shelf = Shelf(key.tenant)
        return {
            given.message
            for application in await self._applications(shelf)
            for proposal in (await self.instructions.made(shelf, application)).values()
            for given in proposal.sources
            if given.session == key.session
        }

    async def proposed(self, key: SessionKey, messages: Collection[str]) -> None:
        """Drop what was proposed because of these messages; feedback that waits stays."""
        shelf = Shelf(key.tenant)
        for application in await self._applications(shelf):
            await self.instructions.drop_proposals(
                shelf,
                application,
                lambda given: given.session == key.session and given.message in messages,
            )

    async def _forget(self, tenant: str, theirs: Theirs, dry_run: bool) -> int:
        shelf, proposals = Shelf(tenant), 0
        for application in await self._applications(shelf):
            # First: what is being proposed of it must find that it is gone.
            if not dry_run:
                await self.pending.drop(shelf, application, theirs)
            proposals += await self.instructions.drop_proposals(
                shelf, application, theirs, dry_run=dry_run
            )
        return proposals

    async def _applications(self, shelf: Shelf) -> set[str]:
        found = await self.items.namespaces(shelf, (INSTRUCTIONS,))
        return {name for _, *labels in found for name in labels[:1] if name != NOBODYS}
