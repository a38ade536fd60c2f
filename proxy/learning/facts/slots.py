"""Facts with a slot, which has one value at a time: which slot, and which value is later.  Pure.

A model may keep both the old and the new value, or read the new one first.  The later value is the
one that was said later.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from proxy.learning.facts.fact import Fact, Facts
from proxy.recall.lexicon.folding import fold
from proxy.recall.notes.slots import SlotValue, replacing_values, slot_values
from proxy.recall.query.words import tokenize


def slot_of(text: str, quote: str, message: str) -> SlotValue | None:
    """The slot of a message whose value is in both the fact's text and its quote."""
    both = (fold(text), fold(quote))
    filled = slot_values(tokenize(message))
    return next((each for each in filled if all(fold(each.value) in one for one in both)), None)


def _key(fact: Fact) -> tuple[str, str, str]:
    return fact.slot.key if fact.slot else ("", "", "")


def with_later(facts: Mapping[str, Fact]) -> Facts:
    """The facts with ``later`` set where another fact has a later value of the same slot.

    Facts that a person has edited are left out, and slots of which two values have the same time.
    """
    filled = [x for x in facts.values() if x.slot and x.state == "current" and not x.edited]
    filled.sort(key=lambda fact: (_key(fact), fact.last_confirmed))
    found: dict[str, str] = {}
    for _, group in groupby(filled, _key):
        same = list(group)
        if len({fact.last_confirmed for fact in same}) == len(same):
            values = replacing_values([fact.slot for fact in same if fact.slot])
            found.update(zip(map(attrgetter("id"), same), values, strict=True))
    return {
        id: fact if fact.later == found.get(id, "") else replace(fact, later=found.get(id, ""))
        for id, fact in facts.items()
    }
