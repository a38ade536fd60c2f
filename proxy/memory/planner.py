"""From a request to a prompt: what memory does before the upstream is called.

The decisions are pure (reconcile, compose); this is the little I/O between them: one load, and a
second look only where a client shows or needs something that the window does not cover.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from proxy.memory.compose import Prompt, Rules, compose
from proxy.memory.log import open_calls
from proxy.memory.match import wanted_bodies
from proxy.memory.model import Ask, SessionKey, Snapshot
from proxy.memory.reconcile import Plan, reconcile
from proxy.memory.request import Intent, Rerendered
from proxy.memory.retry import retried_exchange
from proxy.memory.store import Memory
from proxy.memory.transcript import Said

Rerender = Callable[[Mapping[str, bytes]], Rerendered]
"""Makes the comparison of answers, given the JSON of stored ones by id."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, its prompt, and the JSON of the stored messages in it."""

    plan: Plan
    prompt: Prompt
    bodies: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans requests over a store; raises what the store raises."""

    store: Memory
    rerender: Rerender

    async def plan(
        self, key: SessionKey, snapshot: Snapshot, m: Sequence[Said], intent: Intent, rules: Rules
    ) -> Planned:
        """The plan for a request, given a snapshot that ``sees_enough``."""
        bodies = dict(snapshot.bodies)
        if wanted := wanted_bodies(snapshot, m):
            bodies |= await self.store.bodies(key, wanted)
        plan = reconcile(snapshot, m, intent, self.rerender(bodies))
        prompt = compose(snapshot, plan, m, rules)
        if missing := prompt.missing(bodies):
            bodies |= await self.store.bodies(key, missing)
        return Planned(plan, prompt, bodies)


def asks_for_whole(m: Sequence[Said], intent: Intent) -> bool:
    """Must the whole log be seen?  Only then can answers be aligned and turns be counted."""
    if intent.history == "full" or intent.rewind:
        return True
    return intent.history == "auto" and any(x.role == "assistant" for x in m)


def sees_enough(snapshot: Snapshot, m: Sequence[Said], intent: Intent) -> bool:
    """Is every call that M answers in sight?  Calls of long ago are behind the window."""
    if snapshot.whole:
        return True
    own = {call for x in m for call in x.calls}
    answers = {x.answers for x in m if x.answers is not None} - own
    if not answers or retried_exchange(snapshot, m, intent) is not None:
        return True
    return answers <= open_calls(snapshot.log).keys()


def whole(ask: Ask) -> Ask:
    return replace(ask, whole=True)
