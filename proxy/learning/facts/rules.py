"""From claims to facts: what is new, said again, said better, or no longer so.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from proxy.learning.facts.claim import Claim
from proxy.learning.facts.fact import USER, Fact, Origin, confirmed, dated, kept_sources, superseded
from proxy.learning.facts.statements import Gist, alike, gist
from proxy.settings.written import FactsSettings

MOST_PAST = 1000
"""Superseded facts that news which come late are compared with: those that were said last."""


class Notes(msgspec.Struct):
    """All facts of a person, by id, while claims are entered into them.

    ``new_id`` gives ids; ``now`` is in Unix seconds; ``origin`` is that of new facts.
    """

    facts: dict[str, Fact]
    settings: FactsSettings
    new_id: Callable[[], str]
    now: float
    origin: Origin = "learned"
    _gists: dict[str, Gist] = msgspec.field(default_factory=dict)
    _said: set[str] = msgspec.field(default_factory=set)

    def enter(self, claim: Claim) -> Fact:
        """The fact that says it now: a new one, or one that did so before.

        It takes the place of its target only if that was not said later: of news that come late,
        the later ones win.  A target that nothing was said of stays, with a mark until it is said
        again.
        """
        twin, target = self._twin(claim), self._target(claim)
        doubted, target = (target, None) if claim.apart else (None, target)
        if twin and claim.state not in ("current", twin.state):
            return twin
        late = target is not None and claim.source.at < target.last_confirmed
        fact = self._again(twin, claim) if twin else self._add(claim, target, late)
        if target and not late and target.id != fact.id and fact.state == "current":
            self._put(superseded(target, fact, claim.source))
        if doubted and doubted.id != fact.id and claim.source.at >= doubted.last_confirmed:
            self._put(replace(doubted, doubted_by=fact.id))
        self._said.add(fact.id)
        return fact

    def said_again(self, claim: Claim) -> None:
        """The claim says nothing of its own, only that a fact still holds, or until when.

        Since when, a model copies from the note.
        """
        known = self.facts.get(claim.fact or "")
        if known is not None and known.state == claim.state == "current":
            self._said.add(self._again(known, claim._replace(valid_from=None)).id)

    def _again(self, fact: Fact, claim: Claim) -> Fact:
        """The fact, said once more; with other dates it is another one, which takes its place."""
        if fact.state == "current" and _redates(claim, fact):
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
        """Is there a doubt of it that is no older than that?"""
        doubt = self.facts.get(fact.doubted_by or "")
        return doubt is not None and doubt.last_confirmed >= at

    def within(self, most: int) -> None:
        """Let the least recently confirmed go where more than ``most`` current ones were learned:
        none that a person has added or edited, and none of those just entered."""
        current = [fact for fact in self.facts.values() if fact.holds(self.now)]
        learned = [fact for fact in current if fact.origin == "learned" and not fact.edited]
        before = [fact for fact in learned if fact.id not in self._said]
        before.sort(key=lambda fact: (fact.last_confirmed, fact.id))
        for fact in before[: max(0, len(learned) - most)]:
            self._put(replace(fact, state="superseded"))

    def _twin(self, claim: Claim) -> Fact | None:
        """A fact that says the same: of the claim's state, or known though that is doubtful, or
        taken back later than the claim was said."""
        wanted, states = gist(claim.text), {claim.state, "current"}
        known = (fact for fact in self.facts.values() if fact.state in states)
        past = self._taken_back(claim.source.at) if claim.state == "current" else ()
        found = (
            fact
            for fact in chain(known, past)
            if (fact.until is None or fact.until > claim.source.at)
            and (fact.about == USER) == (claim.about == USER)
            and alike(wanted, self._gist(fact))
        )
        return next(found, None)

    def _taken_back(self, at: float) -> Sequence[Fact]:
        """Facts in whose place there is something that was said later than then."""
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
        return nlargest(MOST_PAST, past, key=attrgetter("last_confirmed"))

    def _target(self, claim: Claim) -> Fact | None:
        """The fact whose place the claim takes: what it names, or what has taken the place of that
        since the model was shown it.

        What one message says stands side by side, and so do two more precise wordings.
        """
        known = self.facts.get(claim.fact or "")
        if known is None or claim.op == "add" or claim.state != "current":
            return None
        for heir in self._heirs(known):
            beside = claim.op == "update" and heir.inherited
            if beside or known.superseded_in == claim.source:
                return None
            known = heir
        same_kind = (known.about == USER) == (claim.about == USER)
        return known if known.state == "current" and same_kind else None

    def _heirs(self, fact: Fact) -> Iterator[Fact]:
        """What took its place, then what took the place of that, each once."""
        seen = {fact.id}
        while (heir := self.facts.get(fact.superseded_by or "")) and heir.id not in seen:
            seen.add(heir.id)
            yield heir
            fact = heir

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
            fact = _better(fact, target)
        fact = dated(fact, self.settings)
        self._put(fact)
        return fact

    def _put(self, fact: Fact) -> None:
        self.facts[fact.id] = fact

    def _gist(self, fact: Fact) -> Gist:
        known = self._gists.get(fact.id)
        if known is None:
            known = self._gists[fact.id] = gist(fact.text)
        return known


def _redates(claim: Claim, fact: Fact) -> bool:
    """Does a claim that is no older tell another day since or until when the fact holds?"""
    begins = fact.valid_from if fact.known_since else None
    told = claim.valid_from not in (None, begins) or claim.until not in (None, fact.until)
    return told and claim.source.at >= fact.last_confirmed


def _better(fact: Fact, before: Fact) -> Fact:
    """A fact that says the same as the one before, more precisely: what it leaves open stays, where
    it does not end before it begins."""
    begins, known, until = fact.valid_from, fact.known_since, fact.until
    if not known and (until is None or before.valid_from < until):
        known = before.known_since
        begins = before.valid_from if known else min(begins, before.valid_from)
    if until is None and before.until is not None and before.until > begins:
        until = before.until
    return replace(
        fact,
        inherited=kept_sources((*before.inherited, *before.sources)),
        valid_from=begins,
        known_since=known,
        until=until,
        metadata=before.metadata,
    )


def entered(
    facts: Mapping[str, Fact],
    claimed: Sequence[Claim],
    settings: FactsSettings,
    new_id: Callable[[], str],
    now: float,
) -> dict[str, Fact]:
    """The facts after claims, those learned before them within ``max_facts``."""
    notes = Notes(dict(facts), settings, new_id, now)
    for claim in claimed:
        if claim.op == "none":
            notes.said_again(claim)
        else:
            notes.enter(claim)
    notes.within(settings.max_facts)
    return notes.facts
