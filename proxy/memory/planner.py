"""From a request to a prompt: what memory does before the upstream is called.

The decisions are pure (reconcile, compose); this is the I/O between them: one load, and further
reads only if a client sends or needs something outside of the window, or changes something that a
summary covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.archive import Archive
from proxy.memory.model import Entry, Position, SessionKey, Snapshot, State, Summary
from proxy.memory.prompt.compose import Prompt, PromptRules, compose
from proxy.memory.reconciliation.branch_answers import (
    DoubtfulAnswer,
    answers_before_calls,
    doubtful_answers,
)
from proxy.memory.reconciliation.branch_switch import on_branch, plan_of, with_switch
from proxy.memory.reconciliation.joined_answers import (
    known_digests,
    split_cost,
    split_known_answers,
)
from proxy.memory.reconciliation.match import (
    CompareAnswers,
    Intent,
    answered_from_before,
    bodies_to_compare,
    entries_after,
    may_be_user_alone,
    open_calls,
)
from proxy.memory.reconciliation.plan import Plan
from proxy.memory.reconciliation.reconcile import answer_comparison, reconcile
from proxy.memory.reconciliation.retry import retried_exchange
from proxy.memory.store import Memory, Summaries
from proxy.process.threads import SharedThreads, shared_pool

T = TypeVar("T")

LONG_LOG = 1000
"""Messages of log and request above which planning runs in a thread."""


LOOK_BACK = 200
"""Seqs before tool calls that are searched for an earlier answer in their place."""


class PlannedRequest(msgspec.Struct, frozen=True, gc=False):
    """A plan, its prompt, and the JSON of the stored messages in it.

    ``snapshot`` is what they were made from, with the summary that stays valid under the plan.
    ``messages`` are the request's messages as they were planned: see ``split_known_answers``.
    """

    snapshot: Snapshot
    plan: Plan
    prompt: Prompt
    bodies: Mapping[str, bytes]
    messages: Sequence[ChatMessage]


class PlanningStore(Memory, Archive, Summaries, Protocol):
    """The part of a store that planning needs."""


def planning_threads() -> SharedThreads:
    return SharedThreads(shared_pool("planning"))


class Planner(msgspec.Struct, frozen=True):
    """Plans requests over a store; raises what the store raises.

    Long conversations are planned in ``threads``, so that the event loop serves others.
    """

    store: PlanningStore
    threads: SharedThreads = msgspec.field(default_factory=planning_threads)
    answer_comparison: Callable[[Mapping[str, bytes]], CompareAnswers] = answer_comparison
    """Makes the function that compares answers from the JSON of stored ones by id."""

    async def run(self, tenant: str, size: int, work: Callable[[], T]) -> T:
        """The result of ``work`` on ``size`` messages, in a thread if they are many."""
        if size <= LONG_LOG:
            return work()
        return await self.threads.run(tenant, work)

    async def plan(
        self,
        key: SessionKey,
        snapshot: Snapshot,
        m: Sequence[ChatMessage],
        intent: Intent,
        rules: PromptRules,
    ) -> PlannedRequest:
        """The plan for a request, given a snapshot that ``is_sufficient``."""
        seen = on_branch(snapshot, intent)
        m = await self._split_answers(key.tenant, m, seen.log)
        bodies, length = snapshot.bodies, len(seen.log) + len(m)
        if wanted := await self.run(key.tenant, length, partial(bodies_to_compare, seen, m)):
            bodies = {**bodies, **await self.store.bodies(key, wanted)}
        compare_answers = self.answer_comparison(bodies)
        plan = await self.run(
            key.tenant, length, partial(plan_of, seen, m, intent, compare_answers)
        )
        if doubts := doubtful_answers(seen.log, plan, m):
            returned = await self._find_returned(key, doubts)
            again = partial(reconcile, seen, m, intent, compare_answers, returned)
            plan = await self.run(key.tenant, length, again) if returned else plan
        if seen is not snapshot:
            plan = with_switch(plan, snapshot.log, seen.log)
        if rules.summaries is not None and (changed := _summarised_changes(snapshot, plan)):
            summary = _newest_unaffected(await self.store.summaries(key), changed)
            snapshot = replace(snapshot, summary=summary)
        prompt = await self.run(key.tenant, length, partial(compose, snapshot, plan, m, rules))
        if missing := prompt.missing_bodies(bodies):
            bodies = {**bodies, **await self.store.bodies(key, missing)}
        return PlannedRequest(snapshot, plan, prompt, bodies, m)

    async def _find_returned(
        self, key: SessionKey, doubts: Sequence[DoubtfulAnswer]
    ) -> frozenset[str]:
        states: tuple[State, ...] = ("superseded",)
        behind = max(0, min(doubt.calls for doubt in doubts) - LOOK_BACK)
        page = await self.store.messages(key, states, behind, LOOK_BACK)
        return answers_before_calls(doubts, page.items)

    async def _split_answers(
        self, tenant: str, m: Sequence[ChatMessage], log: Sequence[Entry]
    ) -> Sequence[ChatMessage]:
        """The messages, with answers split that the log has as several.  Nearly always there are
        none, so that the log is not searched."""
        if not log or not any(message.splitter for message in m):
            return m
        known = known_digests(log)
        size = split_cost(m, known)
        work = partial(split_known_answers, m, known)
        return await self.run(tenant, size, work) if size else m


def _summarised_changes(snapshot: Snapshot, plan: Plan) -> list[Position]:
    """Positions of messages that the summary covers and the plan supersedes or activates."""
    summary = snapshot.summary
    if summary is None or not (plan.superseded or plan.activated):
        return []
    changed = plan.superseded.union(plan.activated)
    entries = [
        e for e in (*snapshot.log, *snapshot.inactive_choices, *plan.log) if e.card.id in changed
    ]
    return [e.position for e in entries if summary.covers(e.position)]


def _newest_unaffected(versions: Sequence[Summary], changed: Sequence[Position]) -> Summary | None:
    """The newest version that covers none of these positions: the one that the commit keeps."""
    return next((v for v in versions if not any(map(v.covers, changed))), None)


def needs_whole_log(m: Sequence[ChatMessage], intent: Intent) -> bool:
    """Whether planning needs the whole log, as for aligning answers and counting turns."""
    if intent.history == "full" or intent.rewind or intent.branch:
        return True
    return intent.history == "auto" and any(x.role == "assistant" for x in m)


def is_sufficient(snapshot: Snapshot, m: Sequence[ChatMessage], intent: Intent) -> bool:
    """Whether the snapshot has what planning needs.

    That is: the calls that M answers, which may be older than the window; the answer that M
    continues, if it names one; all user messages, if M may consist of these alone; and for a retry,
    which may drop versions of the summary, all that the summary covers.
    """
    if snapshot.whole:
        return True
    if intent.continued_answer and entries_after(snapshot.log, intent.continued_answer) != []:
        return False
    if intent.history == "auto" and may_be_user_alone(snapshot.log, m):
        return False
    if retried_exchange(snapshot, m, intent) is not None:
        return snapshot.summary is None
    answers = answered_from_before(m)
    return not answers or answers <= open_calls(snapshot.log).keys()
