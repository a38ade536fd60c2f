"""Which standing instructions are in force, and which of them go into a prompt.  Pure.

A newer one takes the place of what it is about in the older ones; a withdrawal takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proxy.recall.standing.matter import ALLERGY, EATING, GENERIC, SINGLE_VALUED, jaccard, stems
from proxy.recall.standing.standing import StandingInstruction, head_and_tail

SAME_TOPIC = 0.6
"""Two are about the same if they share this part of all their words."""
WITHDRAWN = 0.5
"""A withdrawal applies to parts that have this share of its words."""
MAX_INSTRUCTIONS = 200
"""Older ones than the newest of this number are not looked at."""
MAX_COMPARED = MAX_INSTRUCTIONS * MAX_INSTRUCTIONS // 2
"""Nor are older ones than those of which so many parts were compared."""


def _adjacent(older: int, newer: int) -> bool:
    return True


def instructions_in_force(
    standings: Sequence[StandingInstruction],
    right_after: Callable[[int, int], bool] = _adjacent,
) -> tuple[StandingInstruction, ...]:
    """Of ``MAX_INSTRUCTIONS`` standings, newest first, those that are in force, whole or in part.

    A withdrawal is among them where it takes back a part of one.  ``right_after`` says by their
    places here whether of two neighbours the newer one was said with nothing of the user's between
    them.
    """
    kept: set[int] = set()
    newer: list[StandingInstruction] = []
    compared = 0
    for place, standing in enumerate(standings[:MAX_INSTRUCTIONS]):
        taken_back = newer and newer[-1].withdraws_previous and right_after(place, place - 1)
        if standing.kind != "withdrawal" and not taken_back:
            near = [n for n in newer if n.touches(standing)]
            compared += len(standing.parts) * sum(len(n.parts) for n in near) if near else 0
            if compared > MAX_COMPARED:
                break
            kept.update(_ids_in_force(standing, near))
        newer.append(standing)
    return tuple(standing for standing in newer if id(standing) in kept)


def _ids_in_force(old: StandingInstruction, newer: Sequence[StandingInstruction]) -> set[int]:
    """The ids of what stays in force of an older one: none, or it and the withdrawals of its
    parts."""
    gone_by = [_superseded_parts(new, old) for new in newer]
    if newer and set().union(*gone_by) >= set(range(len(old.parts))):
        return set()
    back = [
        new
        for place, new in enumerate(newer)
        if gone_by[place]
        and new.kind == "withdrawal"
        and not any(_superseded_parts(n, new) for n in newer[:place])
    ]
    return {id(old), *map(id, back)}


def _superseded_parts(new: StandingInstruction, old: StandingInstruction) -> set[int]:
    """The parts of an older instruction that a newer one which touches it supersedes or
    withdraws."""
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
    """Which parts of an older one are taken back: those of which all is named, or, if there are
    none, those that have most of what is."""
    parts = {i: part for i, part in enumerate(old.parts) if not new.narrows(part)}
    if not new.words:
        return set(parts)
    # Who is not allergic to one thing, has not one diet or eats one food says nothing of others.
    named = (new.words - ALLERGY - SINGLE_VALUED or new.words) - EATING
    shared = {place: len(named & part.words) for place, part in parts.items()}
    whole = {i for i, part in parts.items() if shared[i] and part.words - GENERIC <= named}
    most = max(1, WITHDRAWN * len(named), *shared.values())
    return whole or {place for place, share in shared.items() if share >= most}


def pinned(
    question: str,
    standings: Sequence[StandingInstruction],
    budget: int,
    count: Callable[[str], int],
) -> tuple[StandingInstruction, ...]:
    """Those of ``instructions_in_force`` standings, newest first, that go into the prompt of a
    question.

    ``count`` gives the tokens that a text costs, its line's framing included; together they cost at
    most ``budget``.  A leaning is pinned only where the question touches its matter.  Where not
    all fit, what the question touches most goes first, then what holds everywhere.
    """
    if not standings:
        return ()
    asked = stems(head_and_tail(question))
    touched = sorted(
        (s for s in standings if s.words & asked),
        key=lambda s: (s.kind == "leaning", -len(s.words & asked)),
    )
    rest = [s for s in standings if not s.words & asked and s.kind != "leaning"]
    order = sorted(rest, key=lambda s: (s.kind in ("preference", "leaning"), bool(s.scope)))
    chosen: set[int] = set()
    for standing in [*touched, *order]:
        cost = count(standing.text)
        if cost <= budget:
            budget -= cost
            chosen.add(id(standing))
    return tuple(s for s in standings if id(s) in chosen)
