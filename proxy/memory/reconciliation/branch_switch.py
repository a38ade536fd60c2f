"""Plans requests that continue another branch or another choice than the log's end.  Pure.

For another branch the request is planned as if the log had been switched to it already.  The log is
switched when the exchange is recorded: a request without an answer changes nothing.

From another choice of the newest answer: a client that sends its choice again shows which it is;
one that sends only the results of calls shows it by what they answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.model import Entry, Snapshot
from proxy.memory.reconciliation.match import (
    CompareAnswers,
    Intent,
    answered_from_before,
    open_calls,
)
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import reconcile


def on_branch(snapshot: Snapshot, intent: Intent) -> Snapshot:
    """The snapshot with the log of the branch that the request continues."""
    return replace(snapshot, log=intent.branch) if intent.branch else snapshot


def with_switch(plan: Plan, log: Sequence[Entry], branch: Sequence[Entry]) -> Plan:
    """A plan made for the ``branch``, which also switches the ``log`` to that branch."""
    active, kept = ({entry.card.id for entry in entries} for entries in (log, branch))
    stays = active | plan.superseded
    back = [entry.card.id for entry in branch if entry.card.id not in stays]
    gone = plan.superseded | (active - kept)
    return replace(plan, superseded=gone, activated=(*back, *plan.activated))


def plan_of(
    snapshot: Snapshot, m: Sequence[ChatMessage], intent: Intent, compare_answers: CompareAnswers
) -> Plan:
    """The plan for a request; the choice whose calls it answers is activated."""
    chosen = _answered_choice(snapshot, m)
    if chosen is not None:
        *before, left = snapshot.log
        taken = replace(snapshot, log=(*before, chosen))
        plan = reconcile(taken, m, intent, compare_answers)
        if chosen.card.id not in plan.superseded:
            gone, active = plan.superseded | {left.card.id}, (*plan.activated, chosen.card.id)
            return replace(plan, superseded=gone, activated=active)
    return reconcile(snapshot, m, intent, compare_answers)


def _answered_choice(snapshot: Snapshot, m: Sequence[ChatMessage]) -> Entry | None:
    """The inactive choice of the newest answer whose calls the request answers, else None."""
    if not snapshot.log or not snapshot.alternates:
        return None
    answers = answered_from_before(m)
    if not answers or not answers.isdisjoint(open_calls(snapshot.log)):
        return None
    others = snapshot.alternates.get(snapshot.log[-1].card.exchange, ())
    return next((x for x in others if not x.card.incomplete and answers <= {*x.card.calls}), None)
