"""Where a tenant's instructions are kept: read, written, put back, proposals decided on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from proxy.learning.forgetting import ATTEMPTS, Busy, anything
from proxy.learning.instructions import (
    MOST_PROPOSALS,
    MOST_VERSIONS,
    Instructions,
    Proposal,
    Revision,
    Theirs,
    current_place,
    namespace,
    proposal_place,
    revision_place,
)
from proxy.memory.archive import Page
from proxy.memory.items import Change, Item, Items, Place, Shelf


@dataclass(frozen=True, slots=True)
class Held:
    """Instructions as they lie on their shelf; ``stored`` is the version of their item, or 0."""

    instructions: Instructions = Instructions()
    stored: int = 0
    updated_at: float | None = None


Check = Callable[[Held], None]
"""Raises where instructions are not what a change is meant for."""


class NotThere(LookupError):
    """There is no such version, or no such proposal."""


class Outdated(Exception):
    """The proposal was decided on before, or the instructions have changed since it was made."""


class InstructionShelf:
    """All methods raise StoreError; those that change something raise Busy as well.

    A shelf is a tenant's own.  ``clock`` gives Unix seconds.
    """

    def __init__(self, items: Items, clock: Callable[[], float]) -> None:
        self._items, self._time = items, clock

    async def current(self, shelf: Shelf, application: str) -> Held:
        item = await self._at(shelf, current_place(application))
        if item is None:
            return Held()
        return Held(
            msgspec.json.decode(item.value, type=Instructions), item.version, item.updated_at
        )

    async def versions(
        self, shelf: Shelf, application: str, after: int, limit: int
    ) -> Page[Revision]:
        """By number, ascending, behind ``after``."""
        start = revision_place(application, after)
        page = await self._items.items(shelf, start.namespace, start, limit)
        found = tuple(msgspec.json.decode(item.value, type=Revision) for item in page.items)
        return Page(found, str(found[-1].version) if page.after is not None else None)

    async def proposals(
        self, shelf: Shelf, application: str, after: str | None, limit: int
    ) -> Page[Proposal]:
        """The oldest first, behind the id ``after``."""
        start = proposal_place(application, after) if after else None
        page = await self._items.items(shelf, namespace(application, "proposals"), start, limit)
        found = tuple(msgspec.json.decode(item.value, type=Proposal) for item in page.items)
        return Page(found, found[-1].id if page.after is not None else None)

    async def write(
        self, shelf: Shelf, application: str, text: str, check: Check = anything
    ) -> Held:
        """A person's text; as it is afterwards."""
        return await self._revise(
            shelf, application, lambda held: Revision(version=held.version + 1, text=text), check
        )

    async def roll_back(
        self, shelf: Shelf, application: str, number: int, check: Check = anything
    ) -> Held:
        """Put an earlier version into force again.  Raises NotThere."""
        item = await self._at(shelf, revision_place(application, number))
        if item is None:
            raise NotThere
        text = msgspec.json.decode(item.value, type=Revision).text
        return await self._revise(
            shelf,
            application,
            lambda held: Revision(version=held.version + 1, text=text, rolled_back_to=number),
            check,
        )

    async def decide(self, shelf: Shelf, application: str, id: str, approve: bool) -> Proposal:
        """Put a proposal into force, or not; as it is afterwards.  Raises NotThere and Outdated."""
        for _ in range(ATTEMPTS):
            item = await self._at(shelf, proposal_place(application, id))
            if item is None:
                raise NotThere
            proposal = msgspec.json.decode(item.value, type=Proposal)
            held = await self.current(shelf, application)
            if proposal.state != "pending" or (
                approve and proposal.base != held.instructions.version
            ):
                raise Outdated
            decided = replace(
                proposal, state="approved" if approve else "rejected", decided_at=self._time()
            )
            changes = [putting(proposal_place(application, id), decided, item.version)]
            if approve:
                changes += self.applying(application, held, decided)
            if await self._items.change_items(shelf, changes):
                return decided
        raise Busy

    def applying(self, application: str, held: Held, proposal: Proposal) -> list[Change]:
        """What puts a proposal into force, if the instructions are still what ``held`` says."""
        version = held.instructions.version + 1
        revision = Revision(
            version=version, text=proposal.text, origin="learned", proposal=proposal.id
        )
        return self._revising(application, held, revision)

    async def proposing(self, shelf: Shelf, application: str, proposal: Proposal) -> list[Change]:
        """What keeps a proposal; of too many the oldest goes."""
        page = await self.proposals(shelf, application, None, MOST_PROPOSALS)
        places = [proposal_place(application, proposal.id)]
        if len(page.items) >= MOST_PROPOSALS:
            places.append(proposal_place(application, page.items[0].id))
        gone = [Change(namespace=at.namespace, key=at.key, value=None) for at in places[1:]]
        return [putting(places[0], proposal, 0), *gone]

    async def made(self, shelf: Shelf, application: str) -> dict[Place, Proposal]:
        """All proposals."""
        where = namespace(application, "proposals")
        page = await self._items.items(shelf, where, None, MOST_PROPOSALS)
        return {item.place: msgspec.json.decode(item.value, type=Proposal) for item in page.items}

    async def drop_proposals(
        self, shelf: Shelf, application: str, theirs: Theirs, *, dry_run: bool = False
    ) -> int:
        """Drop those made of feedback that is theirs; how many there were."""
        made = await self.made(shelf, application)
        gone = [place for place, each in made.items() if any(map(theirs, each.sources))]
        changes = [Change(namespace=at.namespace, key=at.key, value=None) for at in gone]
        if changes and not dry_run:
            await self._items.change_items(shelf, changes)
        return len(gone)

    async def _revise(
        self,
        shelf: Shelf,
        application: str,
        revised: Callable[[Instructions], Revision],
        check: Check,
    ) -> Held:
        for _ in range(ATTEMPTS):
            held = await self.current(shelf, application)
            check(held)
            revision = revised(held.instructions)
            if revision.text == held.instructions.text and held.stored:
                return held
            changes = self._revising(application, held, revision)
            if await self._items.change_items(shelf, changes):
                return await self.current(shelf, application)
        raise Busy

    def _revising(self, application: str, held: Held, revision: Revision) -> list[Change]:
        dated = replace(revision, created_at=self._time())
        now = Instructions(text=revision.text, version=revision.version)
        changes = [
            putting(current_place(application), now, held.stored),
            putting(revision_place(application, revision.version), dated, 0),
        ]
        if revision.version > MOST_VERSIONS:
            oldest = revision_place(application, revision.version - MOST_VERSIONS)
            changes.append(Change(namespace=oldest.namespace, key=oldest.key, value=None))
        return changes

    async def _at(self, shelf: Shelf, place: Place) -> Item | None:
        return (await self._items.items_at(shelf, [place])).get(place)


def putting(place: Place, value: msgspec.Struct, after: int | None) -> Change:
    encoded = msgspec.json.encode(value)
    return Change(namespace=place.namespace, key=place.key, value=encoded, after=after)
