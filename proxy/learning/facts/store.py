"""Where a person's facts are kept: read, changed and forgotten as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import (
    Action,
    Collection,
    Forgotten,
    Stored,
    anything,
    dropping,
    putting,
    stored,
)
from proxy.learning.evidence import IsGone, Source
from proxy.learning.facts.card import FactCard, card_of
from proxy.learning.facts.fact import FACTS, KIND, USER, Fact, Facts, fact_place, parted
from proxy.learning.facts.slots import with_later
from proxy.learning.facts.statements import alike, gist
from proxy.learning.prompt_cards import card_place
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, all_items

PAGE = 500

T = TypeVar("T")


class StoredFacts(msgspec.Struct, frozen=True):
    """The facts as they lie on a shelf, and their card, whose version is that of all of them."""

    filed: Mapping[str, Stored[Fact]] = msgspec.field(default_factory=dict)
    card: Stored[FactCard] = msgspec.field(default_factory=lambda: Stored(FactCard()))

    @property
    def facts(self) -> Facts:
        return {id: filed.value for id, filed in self.filed.items()}


class FactStore(Collection):
    async def card(self, shelf: ItemOwner) -> FactCard:
        """What is known at a glance, in one round trip."""
        return (await self._card(shelf)).value

    async def find(self, shelf: ItemOwner, fact: str) -> Stored[Fact] | None:
        item = await self.at(shelf, fact_place(shelf.user, fact))
        return stored(item, Fact) if item else None

    async def load(self, shelf: ItemOwner) -> StoredFacts:
        """All facts.  The card is read first: whatever changes meanwhile changes its version."""
        card, where = await self._card(shelf), (PEOPLE, shelf.user, FACTS)
        found = all_items(self._items, shelf, where, PAGE)
        return StoredFacts({item.key: stored(item, Fact) async for item in found}, card)

    async def save(
        self,
        shelf: ItemOwner,
        kept: StoredFacts,
        facts: Mapping[str, Fact],
        also: Sequence[Change],
        since: float | None,
    ) -> bool:
        """Make the facts what they are now, with other changes; False if any were changed since.

        What they are made from was read at ``since``: see Items.change_items.
        """
        changes = [*self._changes(shelf, kept, facts), *also]
        return await self._items.change_items(shelf, changes, since)

    async def change(
        self,
        shelf: ItemOwner,
        make: Callable[[Facts], T],
        since: float | None = None,
        check: Callable[[StoredFacts], None] = anything,
    ) -> T:
        """Let ``make`` change the facts, which it gets as they are, and store what it has made.

        ``check`` raises where they are not what the change is meant for.  Both may be called more
        than once.  Raises Busy, and what they raise.
        """

        async def step() -> tuple[T, Sequence[Change]]:
            kept = await self.load(shelf)
            check(kept)
            facts = kept.facts
            made = make(facts)
            return made, self._changes(shelf, kept, facts)

        return await self.update(shelf, step, since)

    async def forget(self, shelf: ItemOwner, is_gone: IsGone, dry_run: bool) -> list[Forgotten]:
        """See :class:`proxy.learning.collection.KindStore`."""

        async def step() -> tuple[list[Forgotten], Sequence[Change]]:
            kept = await self.load(shelf)
            # Of thousands of facts what is current again is compared with each: no chat waits.
            after = await asyncio.to_thread(without, kept.facts, is_gone)
            changes = [] if dry_run else self._changes(shelf, kept, after)
            return list(_forgotten(kept.facts, after)), changes

        return await self.update(shelf, step)

    async def drop(
        self, shelf: ItemOwner, id: str, check: Callable[[Item], None] = anything
    ) -> bool:
        """See :class:`proxy.learning.collection.ListedStore`."""

        async def step() -> tuple[bool, Sequence[Change]]:
            kept, item = await self.load(shelf), await self.at(shelf, fact_place(shelf.user, id))
            if item is None or id not in kept.filed:
                return False, ()
            check(item)
            return True, self._changes(shelf, kept, removed(kept.facts, id))

        return await self.update(shelf, step)

    async def carded(self, shelf: ItemOwner) -> Change:
        """What makes the card anew from the facts there are."""
        kept = await self.load(shelf)
        return self._carding(shelf, kept, kept.facts)

    async def _card(self, shelf: ItemOwner) -> Stored[FactCard]:
        return await self.read(shelf, card_place(shelf.user, FACTS), FactCard())

    def _changes(
        self, shelf: ItemOwner, kept: StoredFacts, facts: Mapping[str, Fact]
    ) -> list[Change]:
        """What is new or different is put, and what is gone is deleted; then the card is new."""
        facts = with_later(facts)
        new = Stored(Fact(id="", text=""))
        before = {id: kept.filed.get(id, new) for id in facts}
        changes = [
            putting(fact_place(shelf.user, id), fact, before[id].version)
            for id, fact in facts.items()
            if before[id].value != fact
        ]
        gone = kept.filed.keys() - facts.keys()
        changes += [dropping(fact_place(shelf.user, id)) for id in gone]
        return [*changes, self._carding(shelf, kept, facts)] if changes else []

    def _carding(self, shelf: ItemOwner, kept: StoredFacts, facts: Mapping[str, Fact]) -> Change:
        card = card_of(facts.values(), kept.card.value, self._count, self.clock())
        return putting(card_place(shelf.user, FACTS), card, kept.card.version)


def without(facts: Facts, gone: IsGone) -> Facts:
    """The facts as if nothing had been read there.

    What nobody else has said is deleted, unless a person has vouched for it by editing it.  What
    was superseded because of it is current again.
    """
    left = {id: _less(fact, gone) for id, fact in facts.items()}
    kept = {id: _undoubted(fact, left) for id, fact in left.items() if fact is not None}
    after = {id: _reinstated(fact, facts, kept, gone) for id, fact in kept.items()}
    for fact in [each for each in after.values() if each.state != kept[each.id].state]:
        after[fact.id] = _once(fact, after)
    return after


def removed(facts: Facts, id: str) -> Facts:
    """The facts without this one.

    What it took the place of is not true again because of that; but it has no successor.
    """
    left = {each.id: each for each in facts.values() if each.id != id}
    return {
        each.id: _undoubted(parted(each, each.state) if each.superseded_by == id else each, left)
        for each in left.values()
    }


def _undoubted(fact: Fact, left: Mapping[str, Fact | None]) -> Fact:
    """The fact without the mark of one that is not left."""
    gone = fact.doubted_by is not None and left.get(fact.doubted_by) is None
    return replace(fact, doubted_by=None) if gone else fact


def _less(fact: Fact, gone: IsGone) -> Fact | None:
    """A fact without the sources that are gone; None without any other."""
    removed = [source for source in fact.sources if gone(source)]
    sources = tuple(source for source in fact.sources if not gone(source))
    inherited = tuple(source for source in fact.inherited if not gone(source))
    if not removed:
        return replace(fact, inherited=inherited) if inherited != fact.inherited else fact
    if not sources and not fact.edited:
        return None
    fact = replace(fact, sources=sources, inherited=inherited)
    if fact.edited:  # confirmed by a person, whoever said it before
        return fact
    times = [source.at for source in sources]
    said_then = any(source.at == fact.valid_from for source in removed)
    earlier = fact.last_confirmed - max(times)
    return replace(
        fact,
        valid_from=min(times) if said_then else fact.valid_from,
        last_confirmed=max(times),
        expires_at=_sooner(fact, earlier),
    )


def _sooner(fact: Fact, seconds: float) -> float | None:
    """When it expires, if it was confirmed so much earlier."""
    if fact.expires_at is None or fact.expires_at == fact.until:
        return fact.expires_at
    return fact.expires_at - seconds


def _reinstated(fact: Fact, before: Facts, kept: Facts, gone: IsGone) -> Fact:
    """A fact whose successor is gone is superseded by that one's successor, or by nothing."""
    last, heir = fact, _heir(fact, kept)
    while heir is None and last.superseded_by in before:
        last = before[last.superseded_by]
        heir = _heir(last, kept)
    said_so = last.superseded_in
    if heir is not None and said_so is not None and gone(said_so):
        said_so = _since(heir, said_so)
    if last is fact and said_so == fact.superseded_in:
        return fact
    if heir is None or said_so is None:
        return parted(fact, "current")
    return replace(fact, superseded_by=heir.id, superseded_in=said_so)


def _once(fact: Fact, facts: Facts) -> Fact:
    """A fact that is current again, unless another one that is says the same: then that holds."""
    for other in facts.values():
        same = other.state == "current" and (other.about == USER) == (fact.about == USER)
        if same and other.id != fact.id and alike(gist(other.text), gist(fact.text)):
            said_so = other.sources[-1] if other.sources else None
            return replace(fact, state="superseded", superseded_by=other.id, superseded_in=said_so)
    return fact


def _heir(fact: Fact, kept: Facts) -> Fact | None:
    """The fact that took its place, if it is still there."""
    return kept.get(fact.superseded_by or "")


def _since(heir: Fact, said_so: Source) -> Source | None:
    """Who else has said then, or later, what took its place."""
    return next((source for source in heir.sources if source.at >= said_so.at), None)


def _forgotten(before: Facts, after: Facts) -> Iterator[Forgotten]:
    """What has become of the facts that are not as they were before."""
    for id, fact in before.items():
        action = _action(fact, after.get(id))
        if action is not None:
            yield Forgotten(id, KIND, action, fact.text)


def _action(before: Fact, after: Fact | None) -> Action | None:
    if after is None:
        return "deleted"
    if after.state != before.state:
        return "restored"
    gone = before.sources != after.sources or before.inherited != after.inherited
    return "source_removed" if gone else None
