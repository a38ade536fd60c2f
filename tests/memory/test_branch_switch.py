"""A request that goes on from another branch than the log: what leaves, what comes back, what is
sent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.memory.model import Entry, Snapshot
from proxy.memory.prompt.compose import Prompt, PromptRules, compose
from proxy.memory.prompt.window import Size, Window
from proxy.memory.reconciliation.branch_switch import on_branch, with_switch
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import log, names, recorded, rerendered, talk

HISTORY = log("u1 a1 u2 a2 u3 a3").entries
"""Of which a1 was gone on from twice, with u2 and with u3."""

BEFORE, FIRST, SECOND = (HISTORY[n : n + 2] for n in (0, 2, 4))


def stored(active: Sequence[Entry]) -> Snapshot:
    whole = log("u1 a1 u2 a2 u3 a3").snapshot()
    return replace(whole, log=tuple(active), messages=len(active), tokens=10 * len(active))


def going_on(
    snapshot: Snapshot, way: Sequence[Entry], said: str, rules: PromptRules
) -> tuple[Plan, Prompt]:
    intent, m = Intent(branch=tuple(way)), talk(said)
    plan = reconcile(on_branch(snapshot, intent), m, intent, rerendered)
    plan = with_switch(plan, snapshot.log, intent.branch)
    return plan, compose(snapshot, plan, m, rules)


def test_the_branch_comes_back_and_what_stood_in_its_place_leaves() -> None:
    snapshot = stored([*BEFORE, *SECOND])
    plan, prompt = going_on(snapshot, [*BEFORE, *FIRST], "u4", PromptRules(window=Window()))
    assert names(prompt.pieces, talk("u4")) == "u1 a1 u2 a2 u4"
    assert recorded(plan, talk("u4")) == "u4"
    assert plan.superseded == {entry.card.id for entry in SECOND}
    assert plan.activated == tuple(entry.card.id for entry in FIRST)
    assert plan.follows == FIRST[-1].card.id
    assert prompt.evicted == Size(0, 0)


def test_what_the_request_takes_back_itself_does_not_come_back() -> None:
    snapshot, m = stored([*BEFORE, *SECOND]), "u1 a1 u2 a2~anew"
    plan, _ = going_on(snapshot, [*BEFORE, *FIRST], f"{m} u4", PromptRules(window=Window()))
    assert FIRST[-1].card.id not in plan.activated
    assert FIRST[0].card.id in plan.activated


def test_a_window_that_began_behind_it_is_found_anew() -> None:
    rules = PromptRules(window=Window(max_messages=2))
    snapshot = replace(stored([*BEFORE, *SECOND]), start=SECOND[0].position)
    _, prompt = going_on(snapshot, [*BEFORE, *FIRST], "u4", rules)
    assert (prompt.start_recomputed, prompt.start) == (True, FIRST[0].position)
    assert names(prompt.pieces, talk("u4")) == "u2 a2 u4"
