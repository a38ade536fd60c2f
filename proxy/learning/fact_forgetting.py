"""Taking a session, or one exchange of it, out of what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from proxy.learning.fact import FACTS, Fact, parted
from proxy.learning.fact_book import FactBook, Facts
from proxy.learning.forgetting import Action, Forgotten
from proxy.learning.source import Source
from proxy.memory.items import Shelf

From = Callable[[Source], bool]
"""Is a source of what is to be forgotten?"""


class FactForgetting:
    """See :class:`proxy.learning.forgetting.Part`.  Raises Busy as well."""

    def __init__(self, book: FactBook) -> None:
        self._book = book

    async def forget(
        self, shelf: Shelf, session: str, exchange: str | None, dry_run: bool
    ) -> list[Forgotten]:
        def make(facts: Facts) -> list[Forgotten]:
            after = without(facts, lambda source: source.within(session, exchange))
            told = list(_told(facts, after))
            facts.clear()
            facts.update(after)
            return told

        if dry_run:
            return make((await self._book.load(shelf)).facts)
        return await self._book.change(shelf, make)


def without(facts: Facts, gone: From) -> Facts:
    """The facts as if nothing had been read there.

    What nobody else has said is deleted, unless a person has vouched for it by editing it.  What
    was superseded because of it is current again.
    """
    left = {id: _less(fact, gone) for id, fact in facts.items()}
    kept = {id: fact for id, fact in left.items() if fact is not None}
    return {id: _reinstated(fact, facts, kept, gone) for id, fact in kept.items()}


def _less(fact: Fact, gone: From) -> Fact | None:
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


def _reinstated(fact: Fact, before: Facts, kept: Facts, gone: From) -> Fact:
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


def _heir(fact: Fact, kept: Facts) -> Fact | None:
    """The fact that took its place, if it is still there."""
    return kept.get(fact.superseded_by or "")


def _since(heir: Fact, said_so: Source) -> Source | None:
    """Who else has said then, or later, what took its place."""
    return next((source for source in heir.sources if source.at >= said_so.at), None)


def _told(before: Facts, after: Facts) -> Iterator[Forgotten]:
    for id, fact in before.items():
        action = _action(fact, after.get(id))
        if action is not None:
            yield Forgotten(id, FACTS.removesuffix("s"), action, fact.text)


def _action(before: Fact, after: Fact | None) -> Action | None:
    if after is None:
        return "deleted"
    if after.state != before.state:
        return "restored"
    gone = before.sources != after.sources or before.inherited != after.inherited
    return "source_removed" if gone else None
