"""Merges claims into a person's facts: added, confirmed, made more precise, superseded.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from proxy.learning.facts.claim import Claim
from proxy.learning.facts.fact import (
    USER,
    Fact,
    Origin,
    confirmed,
    limit_sources,
    superseded,
    with_expiry,
)
from proxy.learning.facts.statements import Gist, gist, says_the_same
from proxy.settings.learned import FactsSettings

MAX_SUPERSEDED = 1000
"""Superseded facts that a late claim is compared with, the last confirmed."""


class ClaimMerger(msgspec.Struct):
    """Merges claims into ``facts``, all facts of a person by id, which it changes.

    ``now`` is in Unix seconds; ``origin`` is that of new facts.
    """

    facts: dict[str, Fact]
    settings: FactsSettings
    new_id: Callable[[], str]
    now: float
    origin: Origin = "learned"
    _gists: dict[str, Gist] = msgspec.field(default_factory=dict)
    _entered: set[str] = msgspec.field(default_factory=set)

    def merge(self, claim: Claim) -> Fact:
        """Merge a claim; returns the new or existing fact that states it.

        It supersedes its target only if that was not confirmed after the claim.  A target that no
        message is about stays, with ``doubted_by`` set until it is confirmed.
        """
        duplicate, target = self._duplicate(claim), self._target(claim)
        doubted, target = (target, None) if claim.apart else (None, target)
        if duplicate and claim.state not in ("current", duplicate.state):
            return duplicate
        late = target is not None and claim.source.at < target.last_confirmed
        fact = self._confirm(duplicate, claim) if duplicate else self._add(claim, target, late)
        if target and not late and target.id != fact.id and fact.state == "current":
            self._put(superseded(target, fact, claim.source))
        if doubted and doubted.id != fact.id and claim.source.at >= doubted.last_confirmed:
            self._put(replace(doubted, doubted_by=fact.id))
        self._entered.add(fact.id)
        return fact

    def confirm(self, claim: Claim) -> None:
        """Merge a claim that only confirms a fact, or says until when it is valid.

        Its ``valid_from`` is ignored: models copy it from the prompt.
        """
        known = self.facts.get(claim.fact or "")
        if known is not None and known.state == claim.state == "current":
            self._entered.add(self._confirm(known, claim._replace(valid_from=None)).id)

    def _confirm(self, fact: Fact, claim: Claim) -> Fact:
        """Confirm a fact; if the claim has other dates, supersede it by one with these."""
        if fact.state == "current" and _changes_dates(claim, fact):
            again = claim._replace(op="update", text=fact.text, about=fact.about)
            new = self._add(again, fact, late=False)
            self._put(superseded(fact, new, claim.source))
            return new
        same = confirmed(fact, claim.source, self.settings)
        if not self._is_doubted(fact, claim.source.at):
            same = replace(same, doubted_by=None)
        self._put(same)
        return same

    def _is_doubted(self, fact: Fact, at: float) -> bool:
        """Whether the fact that doubts it was confirmed at that time or later."""
        doubt = self.facts.get(fact.doubted_by or "")
        return doubt is not None and doubt.last_confirmed >= at

    def trim(self, most: int) -> None:
        """Supersede the least recently confirmed of more than ``most`` current learned facts, but
        none that a person has added or edited, and none that was just merged."""
        current = [fact for fact in self.facts.values() if fact.holds(self.now)]
        learned = [fact for fact in current if fact.origin == "learned" and not fact.edited]
        before = [fact for fact in learned if fact.id not in self._entered]
        before.sort(key=lambda fact: (fact.last_confirmed, fact.id))
        for fact in before[: max(0, len(learned) - most)]:
            self._put(replace(fact, state="superseded"))

    def _duplicate(self, claim: Claim) -> Fact | None:
        """A fact that says the same: current, of the claim's state, or for a current claim
        superseded by something that was said after it."""
        wanted, states = gist(claim.text), {claim.state, "current"}
        known = (fact for fact in self.facts.values() if fact.state in states)
        past = self._superseded_after(claim.source.at) if claim.state == "current" else ()
        found = (
            fact
            for fact in chain(known, past)
            if (fact.until is None or fact.until > claim.source.at)
            and (fact.about == USER) == (claim.about == USER)
            and says_the_same(wanted, self._gist(fact))
        )
        return next(found, None)

    def _superseded_after(self, at: float) -> Sequence[Fact]:
        """Facts superseded, directly or not, by a fact that was confirmed after ``at``."""
        replaced: dict[str, list[Fact]] = {}
        for fact in self.facts.values():
            if fact.state == "superseded" and fact.superseded_by:
                replaced.setdefault(fact.superseded_by, []).append(fact)
        later = [fact for fact in self.facts.values() if fact.last_confirmed > at]
        past: list[Fact] = []
        while later:
            found = replaced.pop(later.pop().id, [])
            past += found
            later += found
        return nlargest(MAX_SUPERSEDED, past, key=attrgetter("last_confirmed"))

    def _target(self, claim: Claim) -> Fact | None:
        """The fact that the claim supersedes: the one that it names, or the successor of that.

        None if the same message superseded it already, or if both are more precise wordings of it:
        these stay side by side.
        """
        known = self.facts.get(claim.fact or "")
        if known is None or claim.op == "add" or claim.state != "current":
            return None
        for successor in self._successors(known):
            beside = claim.op == "update" and successor.inherited
            if beside or known.superseded_in == claim.source:
                return None
            known = successor
        same_kind = (known.about == USER) == (claim.about == USER)
        return known if known.state == "current" and same_kind else None

    def _successors(self, fact: Fact) -> Iterator[Fact]:
        """The facts that superseded it, one after the other, each once."""
        seen = {fact.id}
        while (successor := self.facts.get(fact.superseded_by or "")) and successor.id not in seen:
            seen.add(successor.id)
            yield successor
            fact = successor

    def _add(self, claim: Claim, target: Fact | None, late: bool) -> Fact:
        known = claim.valid_from is not None
        fact = Fact(
            id=self.new_id(),
            text=claim.text,
            about=claim.about,
            state=claim.state,
            valid_from=claim.source.at if claim.valid_from is None else claim.valid_from,
            known_since=known,
            last_confirmed=claim.source.at,
            until=claim.until,
            sources=(claim.source,),
            origin=self.origin,
            slot=claim.slot,
        )
        if target and late:
            fact = superseded(fact, target, claim.source)
        elif target and claim.op == "update":
            fact = _with_dates_of(fact, target)
        fact = with_expiry(fact, self.settings)
        self._put(fact)
        return fact

    def _put(self, fact: Fact) -> None:
        self.facts[fact.id] = fact

    def _gist(self, fact: Fact) -> Gist:
        known = self._gists.get(fact.id)
        if known is None:
            known = self._gists[fact.id] = gist(fact.text)
        return known


def _changes_dates(claim: Claim, fact: Fact) -> bool:
    """Whether a claim that is no older has other dates of validity."""
    begins = fact.valid_from if fact.known_since else None
    changed = claim.valid_from not in (None, begins) or claim.until not in (None, fact.until)
    return changed and claim.source.at >= fact.last_confirmed


def _with_dates_of(fact: Fact, before: Fact) -> Fact:
    """A fact that replaces a less precise one, with that one's dates where it has none itself,
    unless it would end before it begins."""
    begins, known, until = fact.valid_from, fact.known_since, fact.until
    if not known and (until is None or before.valid_from < until):
        known = before.known_since
        begins = before.valid_from if known else min(begins, before.valid_from)
    if until is None and before.until is not None and before.until > begins:
        until = before.until
    return replace(
        fact,
        inherited=limit_sources((*before.inherited, *before.sources)),
        valid_from=begins,
        known_since=known,
        until=until,
        metadata=before.metadata,
    )


def apply_claims(
    facts: Mapping[str, Fact],
    claimed: Sequence[Claim],
    settings: FactsSettings,
    new_id: Callable[[], str],
    now: float,
) -> dict[str, Fact]:
    """The facts after merging claims, at most ``max_facts`` of them learned."""
    merger = ClaimMerger(dict(facts), settings, new_id, now)
    for claim in claimed:
        if claim.op == "none":
            merger.confirm(claim)
        else:
            merger.merge(claim)
    merger.trim(settings.max_facts)
    return merger.facts
