"""Which standing instructions are in force, and which of them are pinned to a prompt.  Pure.

A newer instruction supersedes older ones, or parts of them, about the same topic; a withdrawal
cancels them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proxy.recall.standing.standing import StandingInstruction, head_and_tail
from proxy.recall.standing.topics import (
    ALLERGY,
    EATING,
    GENERIC,
    MEAT,
    SINGLE_VALUED,
    jaccard,
    stems,
)

SAME_TOPIC = 0.6
"""Two instructions are about the same topic from this Jaccard index of their words on."""
WITHDRAWN = 0.5
"""A withdrawal cancels parts that have at least this share of its words."""
MAX_INSTRUCTIONS = 200
"""Only so many, the newest, are considered."""
MAX_COMPARED = MAX_INSTRUCTIONS * MAX_INSTRUCTIONS // 2
"""Comparisons of parts after which older ones are not considered either."""


def _adjacent(older: int, newer: int) -> bool:
    return True


def instructions_in_force(
    standings: Sequence[StandingInstruction], right_after: Callable[[int, int], bool] = _adjacent
) -> tuple[StandingInstruction, ...]:
    """Those of ``standings``, newest first, that are in force as a whole or in part.

    Includes withdrawals of a part of one of them.  ``right_after(older, newer)`` tells for the
    indexes of two neighbours whether the user said nothing between them.
    """
    in_force: set[int] = set()
    newer: list[StandingInstruction] = []
    compared = 0
    for place, standing in enumerate(standings[:MAX_INSTRUCTIONS]):
        is_withdrawn = newer and newer[-1].withdraws_previous and right_after(place, place - 1)
        if standing.kind != "withdrawal" and not is_withdrawn:
            near = [n for n in newer if n.touches(standing)]
            compared += len(standing.parts) * sum(len(n.parts) for n in near) if near else 0
            if compared > MAX_COMPARED:
                break
            in_force.update(_ids_in_force(standing, near))
        newer.append(standing)
    return tuple(standing for standing in newer if id(standing) in in_force)


def _ids_in_force(old: StandingInstruction, newer: Sequence[StandingInstruction]) -> set[int]:
    """The ids of what stays in force of an older one: nothing, or the instruction and the
    withdrawals of parts of it."""
    superseded_by = [_superseded_parts(new, old) for new in newer]
    if newer and set().union(*superseded_by) >= set(range(len(old.parts))):
        return set()
    withdrawals = [
        new
        for place, new in enumerate(newer)
        if superseded_by[place]
        and new.kind == "withdrawal"
        and not any(_superseded_parts(n, new) for n in newer[:place])
    ]
    return {id(old), *map(id, withdrawals)}


def _superseded_parts(new: StandingInstruction, old: StandingInstruction) -> set[int]:
    """The indexes of the parts of an older instruction that a newer one, which touches it,
    supersedes or withdraws."""
    if new.kind == "withdrawal":
        return _withdrawn_parts(new, old)
    said = new.parts if len(new.parts) < 2 else (new, *new.parts)
    parts = enumerate(old.parts)
    return {place for place, part in parts if any(_supersedes(each, part) for each in said)}


def _supersedes(new: StandingInstruction, old: StandingInstruction) -> bool:
    if new.topic.isdisjoint(old.topic):
        return False
    if new.kind == "leaning" and old.kind != "leaning":
        return False
    if bool(new.scope) != bool(old.scope) or (
        new.scope and jaccard(new.scope, old.scope) < SAME_TOPIC
    ):
        return False
    shared = new.values & old.values
    if shared & SINGLE_VALUED:
        return True
    if shared & ALLERGY:
        return old.topic <= new.topic and not new.narrows(old)
    if shared:
        return jaccard(new.topic - new.values, old.topic - old.values) >= WITHDRAWN
    return jaccard(new.topic, old.topic) >= SAME_TOPIC


def _withdrawn_parts(new: StandingInstruction, old: StandingInstruction) -> set[int]:
    """The indexes of the parts of an older one that are withdrawn: those whose words are all named;
    if there are none, those with most of the words that are named."""
    parts = {i: part for i, part in enumerate(old.parts) if not new.narrows(part)}
    if not new.words:
        return set(parts)
    # To withdraw one allergy, diet or food says nothing about others.
    named = (new.words - ALLERGY - SINGLE_VALUED or new.words) - EATING
    named -= MEAT if "<diet>" in new.words else frozenset()
    shared = {place: len(named & part.words) for place, part in parts.items()}
    whole = {i for i, part in parts.items() if shared[i] and _is_wholly_named(part, named)}
    most = max(1, WITHDRAWN * len(named), *shared.values())
    return whole or {place for place, share in shared.items() if share >= most}


def _is_wholly_named(part: StandingInstruction, named: frozenset[str]) -> bool:
    """Whether all words of a part are named; of a diet, meat is enough."""
    return part.words - GENERIC - MEAT <= named or bool("<diet>" in part.words and named & MEAT)


def pinned(
    question: str,
    standings: Sequence[StandingInstruction],
    budget: int,
    count: Callable[[str], int],
) -> tuple[StandingInstruction, ...]:
    """Those of the ``standings``, which are in force, newest first, that go into the prompt of a
    question, in the same order.

    ``count`` returns the tokens of a text's line; together they have at most ``budget``.  A leaning
    is pinned only if the question has words of it.  If not all fit, those with most words of the
    question come first, then those that hold under no condition.
    """
    if not standings:
        return ()
    question_stems = stems(head_and_tail(question))
    touched = sorted(
        (s for s in standings if s.words & question_stems),
        key=lambda s: (s.kind == "leaning", -len(s.words & question_stems)),
    )
    untouched = [s for s in standings if not s.words & question_stems and s.kind != "leaning"]
    order = sorted(untouched, key=lambda s: (s.kind in ("preference", "leaning"), bool(s.scope)))
    chosen: set[int] = set()
    for standing in [*touched, *order]:
        cost = count(standing.text)
        if cost <= budget:
            budget -= cost
            chosen.add(id(standing))
    return tuple(s for s in standings if id(s) in chosen)
