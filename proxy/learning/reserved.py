"""What the values of reserved items must be: for those that others bring.  Pure.

What is learned is read without suspicion wherever it is used, so nothing else may get there.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proxy.learning import episode, fact_card, instructions, profile_lines
from proxy.learning.episode import Episode
from proxy.learning.fact import FACTS, Fact
from proxy.learning.feedback import FEEDBACK, NOBODYS, Feedback
from proxy.learning.lesson import READ, Mark
from proxy.learning.profile import FEATURE, Profile, Version
from proxy.memory.items import INSTRUCTIONS, Item

_OF_PEOPLE: Mapping[str, type[msgspec.Struct]] = {
    FACTS: Fact,
    FEATURE: Profile,
    "profiles": Version,
    episode.FEATURE: Episode,
    FEEDBACK: Feedback,
    READ: Mark,
}
"""By the third label."""

_CARDS: Mapping[str, type[msgspec.Struct]] = {
    FACTS: fact_card.FactCard,
    FEATURE: profile_lines.Card,
    episode.FEATURE: episode.Card,
}
"""By the key."""

_OF_INSTRUCTIONS: Mapping[str, type[msgspec.Struct]] = {
    "versions": instructions.Revision,
    "proposals": instructions.Proposal,
    "feedback": instructions.Given,
    instructions.CURRENT: instructions.Instructions,
    "reflection": instructions.Reflection,
}
"""By the third label, or by the key of what has none."""


def is_sound(item: Item) -> bool:
    """Whether a reserved item holds what its place says."""
    kind = _kind(item)
    if kind is None:
        return False
    try:
        value = msgspec.json.decode(item.value, type=kind)
    except (ValueError, RecursionError):
        return False
    if isinstance(value, Fact | Episode):
        return value.id == item.key
    return True


def _kind(item: Item) -> type[msgspec.Struct] | None:
    first, *labels = item.namespace
    if first == INSTRUCTIONS:
        if labels[:1] == [NOBODYS]:
            return Feedback
        return _OF_INSTRUCTIONS.get(labels[1] if len(labels) > 1 else item.key)
    if labels[1:] == [fact_card.CARDS]:
        return _CARDS.get(item.key)
    return _OF_PEOPLE.get(labels[1]) if len(labels) > 1 else None
