"""Stores a tenant's instructions and their versions: edits, rollbacks, decisions on proposals."""

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
    MAX_PROPOSALS,
    MAX_VERSIONS,
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
"""Raises if the instructions must not be changed as they are."""


class NotFound(LookupError):
    """There is no such version or proposal."""


class Outdated(Exception):
    """The proposal was decided on before, or the instructions have changed since it was made."""


class InstructionStore(Collection):
    """The methods that change something also raise Busy.  Each ``owner`` is a tenant itself."""

    async def current(self, owner: ItemOwner, application: str) -> StoredInstructions:
        return await self.read(owner, current_place(application), Instructions())

    async def versions(
        self, owner: ItemOwner, application: str, after: int, limit: int
    ) -> Page[Revision]:
        """By number, ascending, after ``after``."""
        where, key = revision_place(application, after)
        page = await self.page(owner, where, key, limit, Revision)
        return Page(page.items, str(int(page.after)) if page.after is not None else None)

    async def proposals(
        self, owner: ItemOwner, application: str, after: str | None, limit: int
    ) -> Page[Proposal]:
        """The oldest first, after the id ``after``."""
        where = namespace(application, PROPOSALS)
        return await self.page(owner, where, after or None, limit, Proposal)

    async def write(
        self, owner: ItemOwner, application: str, text: str, check: Check = accept_any
    ) -> StoredInstructions:
        """Store a person's text; returns the instructions after it."""
        return await self._revise(
            owner,
            application,
            lambda stored: Revision(version=stored.version + 1, text=text),
            check,
        )

    async def roll_back(
        self, owner: ItemOwner, application: str, number: int, check: Check = accept_any
    ) -> StoredInstructions:
        """Make an earlier version current again; returns the instructions.  Raises NotFound."""
        item = await self.item_at(owner, revision_place(application, number))
        if item is None:
            raise NotFound
        text = msgspec.json.decode(item.value, type=Revision).text
        return await self._revise(
            owner,
            application,
            lambda stored: Revision(version=stored.version + 1, text=text, rolled_back_to=number),
            check,
        )

    async def decide(self, owner: ItemOwner, application: str, id: str, approve: bool) -> Proposal:
        """Apply or reject a proposal; returns it decided.  Raises NotFound and Outdated."""

        async def step() -> tuple[Proposal, Sequence[Change]]:
            item = await self.item_at(owner, proposal_place(application, id))
            if item is None:
                raise NotFound
            proposal = decode_item(item, Proposal).value
            stored = await self.current(owner, application)
            if proposal.state != "pending" or (approve and proposal.base != stored.value.version):
                raise Outdated
            decided = replace(
                proposal, state="approved" if approve else "rejected", decided_at=self.clock()
            )
            changes = [put_change(item.place, decided, item.version)]
            if approve:
                changes += self.apply_changes(application, stored, decided)
            return decided, changes

        return await self.update(owner, step)

    def apply_changes(
        self, application: str, stored: StoredInstructions, proposal: Proposal
    ) -> list[Change]:
        """The changes that apply a proposal if the instructions are still ``stored``."""
        version = stored.value.version + 1
        revision = Revision(
            version=version, text=proposal.text, origin="learned", proposal=proposal.id
        )
        return self._revise_changes(application, stored, revision)

    async def propose_changes(
        self, owner: ItemOwner, application: str, proposal: Proposal
    ) -> list[Change]:
        """The changes that store a proposal; if there are too many, the oldest is deleted."""
        page = await self.proposals(owner, application, None, MAX_PROPOSALS)
        places = [proposal_place(application, proposal.id)]
        if len(page.items) >= MAX_PROPOSALS:
            places.append(proposal_place(application, page.items[0].id))
        return [put_change(places[0], proposal, 0), *map(delete_change, places[1:])]

    async def all_proposals(self, owner: ItemOwner, application: str) -> dict[Place, Proposal]:
        where = namespace(application, PROPOSALS)
        page = await self.items.items(owner, where, None, MAX_PROPOSALS)
        return {item.place: msgspec.json.decode(item.value, type=Proposal) for item in page.items}

    async def drop_proposals(
        self, owner: ItemOwner, application: str, is_affected: IsAffected, *, dry_run: bool = False
    ) -> int:
        """Delete the proposals with a source that ``is_affected``; returns how many."""
        made = await self.all_proposals(owner, application)
        gone = [place for place, each in made.items() if any(map(is_affected, each.sources))]
        if gone and not dry_run:
            await self.items.change_items(owner, [*map(delete_change, gone)])
        return len(gone)

    async def _revise(
        self,
        owner: ItemOwner,
        application: str,
        revised: Callable[[Instructions], Revision],
        check: Check,
    ) -> StoredInstructions:
        async def step() -> tuple[None, Sequence[Change]]:
            stored = await self.current(owner, application)
            check(stored)
            revision = revised(stored.value)
            if revision.text == stored.value.text and stored.version:
                return None, ()
            return None, self._revise_changes(application, stored, revision)

        await self.update(owner, step)
        return await self.current(owner, application)

    def _revise_changes(
        self, application: str, stored: StoredInstructions, revision: Revision
    ) -> list[Change]:
        dated = replace(revision, created_at=self.clock())
        now = Instructions(text=revision.text, version=revision.version)
        changes = [
            put_change(current_place(application), now, stored.version),
            put_change(revision_place(application, revision.version), dated, 0),
        ]
        if revision.version > MAX_VERSIONS:
            oldest = revision_place(application, revision.version - MAX_VERSIONS)
            changes.append(delete_change(oldest))
        return changes
