"""Stores a person's facts; all of them are read and changed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from proxy.learning.collection import (
    Action,
    Collection,
    Forgotten,
    Stored,
    accept_any,
    decode_item,
    delete_change,
    put_change,
)
from proxy.learning.evidence import IsGone, Source
from proxy.learning.facts.card import FactCard, build_card
from proxy.learning.facts.fact import FACTS, KIND, USER, Fact, Facts, fact_place, with_state
from proxy.learning.facts.slots import with_later
from proxy.learning.facts.statements import SimilarStatements
from proxy.learning.prompt_cards import card_place
from proxy.memory.items import PEOPLE, Change, Item, ItemOwner, all_items

PAGE = 500

T = TypeVar("T")


class StoredFacts(msgspec.Struct, frozen=True):
    """The stored facts by id, and their card, whose version is that of all facts together."""

    by_id: Mapping[str, Stored[Fact]] = msgspec.field(default_factory=dict)
    card: Stored[FactCard] = msgspec.field(default_factory=lambda: Stored(FactCard()))

    @property
    def facts(self) -> Facts:
        return {id: each.value for id, each in self.by_id.items()}


class FactStore(Collection):
    """See :class:`proxy.learning.collection.ListedStore`."""

    async def card(self, owner: ItemOwner) -> FactCard:
        """The card, in one round trip."""
        return (await self._card(owner)).value

    async def load(self, owner: ItemOwner) -> StoredFacts:
        """All facts.  The card is read first, so that any change meanwhile changes its version."""
        card, where = await self._card(owner), (PEOPLE, owner.user, FACTS)
        found = all_items(self.items, owner, where, PAGE)
        return StoredFacts({item.key: decode_item(item, Fact) async for item in found}, card)

    async def change(
        self,
        owner: ItemOwner,
        make: Callable[[Facts], T],
        since: float | None = None,
        check: Callable[[StoredFacts], None] = accept_any,
    ) -> T:
        """Call ``make`` in a thread with the facts, which it changes in place, and store them;
        returns its result.

        ``check`` raises if they must not be changed.  Both may be called more than once.  Raises
        Busy, and what they raise.
        """

        async def step() -> tuple[T, Sequence[Change]]:
            stored = await self.load(owner)
            check(stored)
            facts = stored.facts
            # What is new is compared with thousands: no chat waits for that.
            made = await asyncio.to_thread(make, facts)
            return made, self.changes(owner, stored, facts)

        return await self.update(owner, step, since)

    async def forget(self, owner: ItemOwner, is_gone: IsGone, dry_run: bool) -> list[Forgotten]:
        async def step() -> tuple[list[Forgotten], Sequence[Change]]:
            stored = await self.load(owner)
            # Of thousands of facts what is current again is compared with each: no chat waits.
            after = await asyncio.to_thread(without_sources, stored.facts, is_gone)
            changes = [] if dry_run else self.changes(owner, stored, after)
            return list(_forgotten(stored.facts, after)), changes

        return await self.update(owner, step)

    async def drop(
        self, owner: ItemOwner, id: str, check: Callable[[Item], None] = accept_any
    ) -> bool:
        async def step() -> tuple[bool, Sequence[Change]]:
            stored = await self.load(owner)
            item = await self.item_at(owner, fact_place(owner.user, id))
            if item is None or id not in stored.by_id:
                return False, ()
            check(item)
            return True, self.changes(owner, stored, without_fact(stored.facts, id))

        return await self.update(owner, step)

    async def card_change(self, owner: ItemOwner) -> Change:
        stored = await self.load(owner)
        return self._card_change(owner, stored, stored.facts)

    async def _card(self, owner: ItemOwner) -> Stored[FactCard]:
        return await self.read(owner, card_place(owner.user, FACTS), FactCard())

    def changes(
        self, owner: ItemOwner, stored: StoredFacts, facts: Mapping[str, Fact]
    ) -> list[Change]:
        """The changes that store ``facts`` in place of ``stored``; none if they are equal."""
        facts = with_later(facts)
        new = Stored(Fact(id="", text=""))
        before = {id: stored.by_id.get(id, new) for id in facts}
        changes = [
            put_change(fact_place(owner.user, id), fact, before[id].version)
            for id, fact in facts.items()
            if before[id].value != fact
        ]
        gone = stored.by_id.keys() - facts.keys()
        changes += [delete_change(fact_place(owner.user, id)) for id in gone]
        return [*changes, self._card_change(owner, stored, facts)] if changes else []

    def _card_change(
        self, owner: ItemOwner, stored: StoredFacts, facts: Mapping[str, Fact]
    ) -> Change:
        card = build_card(facts.values(), stored.card.value, self.count, self.clock())
        return put_change(card_place(owner.user, FACTS), card, stored.card.version)


def without_sources(facts: Facts, gone: IsGone) -> Facts:
    """The facts without the sources that are ``gone``.

    A fact without any other source is deleted, unless a person has edited it; what it superseded
    becomes current again.
    """
    left = {id: _without_lost_sources(fact, gone) for id, fact in facts.items()}
    kept = {id: _without_lost_doubt(fact, left) for id, fact in left.items() if fact is not None}
    after = {id: _reinstated(fact, facts, kept, gone) for id, fact in kept.items()}
    restored = [each for each in after.values() if each.state != kept[each.id].state]
    return _with_duplicates_superseded(restored, after) if restored else after


def _with_duplicates_superseded(restored: Sequence[Fact], facts: dict[str, Fact]) -> Facts:
    similar = SimilarStatements(each.text for each in facts.values())
    ids = list(facts)
    for fact in restored:
        same = (facts[ids[place]] for place in similar.same_as(fact.text))
        facts[fact.id] = _superseded_by_duplicate(fact, same)
    return facts


def without_fact(facts: Facts, id: str) -> Facts:
    """The facts without this one.  What it superseded stays so, but without a successor."""
    left = {each.id: each for each in facts.values() if each.id != id}
    return {
        each.id: _without_lost_doubt(
            with_state(each, each.state) if each.superseded_by == id else each, left
        )
        for each in left.values()
    }


def _without_lost_doubt(fact: Fact, left: Mapping[str, Fact | None]) -> Fact:
    """The fact without ``doubted_by`` if that fact is not left."""
    gone = fact.doubted_by is not None and left.get(fact.doubted_by) is None
    return replace(fact, doubted_by=None) if gone else fact


def _without_lost_sources(fact: Fact, gone: IsGone) -> Fact | None:
    """A fact without the sources that are gone; None if it has no other."""
    lost = [source for source in fact.sources if gone(source)]
    sources = tuple(source for source in fact.sources if not gone(source))
    inherited = tuple(source for source in fact.inherited if not gone(source))
    if not lost:
        return replace(fact, inherited=inherited) if inherited != fact.inherited else fact
    if not sources and not fact.edited:
        return None
    fact = replace(fact, sources=sources, inherited=inherited)
    if fact.edited:  # confirmed by a person, whoever said it before
        return fact
    times = [source.at for source in sources]
    said_then = any(source.at == fact.valid_from for source in lost)
    earlier = fact.last_confirmed - max(times)
    return replace(
        fact,
        valid_from=min(times) if said_then else fact.valid_from,
        last_confirmed=max(times),
        expires_at=_earlier_expiry(fact, earlier),
    )


def _earlier_expiry(fact: Fact, seconds: float) -> float | None:
    """``expires_at`` if it was confirmed so many seconds earlier."""
    if fact.expires_at is None or fact.expires_at == fact.until:
        return fact.expires_at
    return fact.expires_at - seconds


def _reinstated(fact: Fact, before: Facts, kept: Facts, gone: IsGone) -> Fact:
    """A fact whose successor is gone: superseded by that one's successor, else current."""
    last, successor = fact, _successor(fact, kept)
    while successor is None and last.superseded_by in before:
        last = before[last.superseded_by]
        successor = _successor(last, kept)
    said_so = last.superseded_in
    if successor is not None and said_so is not None and gone(said_so):
        said_so = _later_source(successor, said_so)
    if last is fact and said_so == fact.superseded_in:
        return fact
    if successor is None or said_so is None:
        return with_state(fact, "current")
    return replace(fact, superseded_by=successor.id, superseded_in=said_so)


def _superseded_by_duplicate(fact: Fact, same: Iterable[Fact]) -> Fact:
    """A fact that became current again; superseded if another current one is among the ``same``."""
    for other in same:
        if (
            other.id != fact.id
            and other.state == "current"
            and (other.about == USER) == (fact.about == USER)
        ):
            said_so = other.sources[-1] if other.sources else None
            return replace(fact, state="superseded", superseded_by=other.id, superseded_in=said_so)
    return fact


def _successor(fact: Fact, kept: Facts) -> Fact | None:
    """The fact that superseded it, None if that is gone."""
    return kept.get(fact.superseded_by or "")


def _later_source(successor: Fact, said_so: Source) -> Source | None:
    """The first source of the successor that is not older than ``said_so``."""
    return next((source for source in successor.sources if source.at >= said_so.at), None)


def _forgotten(before: Facts, after: Facts) -> Iterator[Forgotten]:
    """The facts that were deleted or changed, and how."""
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
