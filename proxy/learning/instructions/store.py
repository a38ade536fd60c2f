"""Where a tenant's instructions are kept: read, written, put back, proposals decided on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import (
    Collection,
    Stored,
    accept_any,
    decode_item,
    delete_change,
    put_change,
)
from proxy.learning.instructions.document import (
    MOST_PROPOSALS,
    MOST_VERSIONS,
    PROPOSALS,
    Instructions,
    IsAffected,
    Proposal,
    Revision,
    current_place,
    namespace,
    proposal_place,
    revision_place,
)
from proxy.memory.archive import Page
from proxy.memory.items import Change, ItemOwner, Place

StoredInstructions = Stored[Instructions]

Check = Callable[[StoredInstructions], None]
"""Raises where instructions are not what a change is meant for."""


class NotThere(LookupError):
    """There is no such version, or no such proposal."""


class Outdated(Exception):
    """The proposal was decided on before, or the instructions have changed since it was made."""


class InstructionStore(Collection):
    """The methods that change something also raise Busy.  Each ``owner`` is a tenant itself."""

    async def current(self, owner: ItemOwner, application: str) -> StoredInstructions:
        return await self.read(owner, current_place(application), Instructions())

    async def versions(
        self, owner: ItemOwner, application: str, after: int, limit: int
    ) -> Page[Revision]:
        """By number, ascending, behind ``after``."""
        where, key = revision_place(application, after)
        page = await self.page(owner, where, key, limit, Revision)
        return Page(page.items, str(int(page.after)) if page.after is not None else None)

    async def proposals(
        self, owner: ItemOwner, application: str, after: str | None, limit: int
    ) -> Page[Proposal]:
        """The oldest first, behind the id ``after``."""
        where = namespace(application, PROPOSALS)
        return await self.page(owner, where, after or None, limit, Proposal)

    async def write(
        self, owner: ItemOwner, application: str, text: str, check: Check = accept_any
    ) -> StoredInstructions:
        """A person's text; as it is afterwards."""
        return await self._revise(
            owner, application, lambda held: Revision(version=held.version + 1, text=text), check
        )

    async def roll_back(
        self, owner: ItemOwner, application: str, number: int, check: Check = accept_any
    ) -> StoredInstructions:
        """Put an earlier version into force again.  Raises NotThere."""
        item = await self.item_at(owner, revision_place(application, number))
        if item is None:
            raise NotThere
        text = msgspec.json.decode(item.value, type=Revision).text
        return await self._revise(
            owner,
            application,
            lambda held: Revision(version=held.version + 1, text=text, rolled_back_to=number),
            check,
        )

    async def decide(self, owner: ItemOwner, application: str, id: str, approve: bool) -> Proposal:
        """Put a proposal into force, or not; as it is afterwards.  Raises NotThere and Outdated."""

        async def step() -> tuple[Proposal, Sequence[Change]]:
            item = await self.item_at(owner, proposal_place(application, id))
            if item is None:
                raise NotThere
            proposal = decode_item(item, Proposal).value
            held = await self.current(owner, application)
            if proposal.state != "pending" or (approve and proposal.base != held.value.version):
                raise Outdated
            decided = replace(
                proposal, state="approved" if approve else "rejected", decided_at=self.clock()
            )
            changes = [put_change(item.place, decided, item.version)]
            return decided, [
                *changes,
                *self.apply_changes(application, held, decided),
            ] if approve else changes

        return await self.update(owner, step)

    def apply_changes(
        self, application: str, held: StoredInstructions, proposal: Proposal
    ) -> list[Change]:
        """What puts a proposal into force, if the instructions are still what ``held`` says."""
        version = held.value.version + 1
        revision = Revision(
            version=version, text=proposal.text, origin="learned", proposal=proposal.id
        )
        return self._revise_changes(application, held, revision)

    async def propose_changes(
        self, owner: ItemOwner, application: str, proposal: Proposal
    ) -> list[Change]:
        """What keeps a proposal; of too many the oldest goes."""
        page = await self.proposals(owner, application, None, MOST_PROPOSALS)
        places = [proposal_place(application, proposal.id)]
        if len(page.items) >= MOST_PROPOSALS:
            places.append(proposal_place(application, page.items[0].id))
        return [put_change(places[0], proposal, 0), *map(delete_change, places[1:])]

    async def all_proposals(self, owner: ItemOwner, application: str) -> dict[Place, Proposal]:
        """All proposals."""
        where = namespace(application, PROPOSALS)
        page = await self._items.items(owner, where, None, MOST_PROPOSALS)
        return {item.place: msgspec.json.decode(item.value, type=Proposal) for item in page.items}

    async def drop_proposals(
        self, owner: ItemOwner, application: str, is_affected: IsAffected, *, dry_run: bool = False
    ) -> int:
        """Drop those made of feedback that is theirs; how many there were."""
        made = await self.all_proposals(owner, application)
        gone = [place for place, each in made.items() if any(map(is_affected, each.sources))]
        if gone and not dry_run:
            await self._items.change_items(owner, [*map(delete_change, gone)])
        return len(gone)

    async def _revise(
        self,
        owner: ItemOwner,
        application: str,
        revised: Callable[[Instructions], Revision],
        check: Check,
    ) -> StoredInstructions:
        async def step() -> tuple[None, Sequence[Change]]:
            held = await self.current(owner, application)
            check(held)
            revision = revised(held.value)
            if revision.text == held.value.text and held.version:
                return None, ()
            return None, self._revise_changes(application, held, revision)

        await self.update(owner, step)
        return await self.current(owner, application)

    def _revise_changes(
        self, application: str, held: StoredInstructions, revision: Revision
    ) -> list[Change]:
        dated = replace(revision, created_at=self.clock())
        now = Instructions(text=revision.text, version=revision.version)
        changes = [
            put_change(current_place(application), now, held.version),
            put_change(revision_place(application, revision.version), dated, 0),
        ]
        if revision.version > MOST_VERSIONS:
            oldest = revision_place(application, revision.version - MOST_VERSIONS)
            changes.append(delete_change(oldest))
        return changes
