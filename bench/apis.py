"""The same turns in each API, side by side: what the others cost beside chat completions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench.indexed import indexed
from bench.plan import Plan, sessions
from bench.processes import Process
from bench.requests import APIS, Api, turn_in
from bench.single import Single, measure_pairs


@dataclass(frozen=True, slots=True)
class ApiCost:
    """Turns of one API in sessions of so many stored messages."""

    api: Api
    size: int
    single: Single = field(default_factory=Single)


def costs(plan: Plan) -> list[ApiCost]:
    return [ApiCost(api, size) for size in plan.api_sizes for api in APIS]


def names(plan: Plan, cost: ApiCost) -> list[str]:
    """Its sessions."""
    return [f"{cost.api[:4]}-{cost.size}-{n}" for n in range(sessions(plan, cost.size))]


def seeds(plan: Plan) -> Iterator[tuple[str, int]]:
    for cost in costs(plan):
        yield from ((name, cost.size) for name in names(plan, cost))


async def measure_apis(
    plan: Plan, upstream: Process, target: Process, step: Callable[[str], None]
) -> list[ApiCost]:
    """In rounds over all of them, so that a bad minute falls on all.  Raises RuntimeError."""
    found = costs(plan)
    await indexed(target, (name for name, _ in seeds(plan)))
    turns = [map(_turn_of(cost), itertools.cycle(names(plan, cost))) for cost in found]
    for _ in range(plan.rounds):
        for cost, requests in zip(found, turns, strict=True):
            await measure_pairs(cost.single, upstream, target, plan, requests.__next__)
            step(f"{cost.api}, session of {cost.size:,}")
    return found


def _turn_of(cost: ApiCost) -> Callable[[str], bytes]:
    return lambda session: turn_in(cost.api, session)
