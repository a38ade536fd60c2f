"""One request after another, each beside a direct one, so that what disturbs one disturbs both."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median, quantiles

from bench.plan import Plan
from bench.processes import Process
from bench.wire import Answer, connect


@dataclass(slots=True)
class Single:
    """What a row's requests took, in seconds, and the direct ones beside them."""

    direct: list[float] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    cpu: float = 0.0
    memory: Counter[str] = field(default_factory=Counter)
    """Answers by their X-Memory-Status."""

    @property
    def added_p50(self) -> float:
        """The median of the differences."""
        return median(a - b for a, b in zip(self.through, self.direct, strict=True))

    @property
    def added_p99(self) -> float:
        """The difference of the 99th percentiles: those of pairs are other requests."""
        return p99(self.through) - p99(self.direct)

    @property
    def cpu_each(self) -> float:
        return self.cpu / len(self.through)


def p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


async def measure_pairs(
    into: Single, upstream: Process, target: Process, plan: Plan, request: Callable[[], bytes]
) -> None:
    """Ask as often as planned, direct and through the target, over kept-alive connections."""
    direct, through = await connect(upstream.port), await connect(target.port)
    try:
        for _ in range(2):  # connections and pools, made before anything is measured
            await direct.ask(request())
            _account(into, await through.ask(request()))
        cpu = target.cpu()
        for _ in range(plan.pairs):
            payload = request()
            into.direct.append((await direct.ask(payload)).total)
            answer = await through.ask(payload)
            _account(into, answer)
            into.through.append(answer.total)
        await asyncio.sleep(plan.afterwards)
        into.cpu += target.cpu() - cpu
    finally:
        direct.close()
        through.close()


def _account(into: Single, answer: Answer) -> None:
    if answer.status != 200:
        raise RuntimeError(f"an answer had status {answer.status}")
    into.memory[answer.headers.get(b"x-memory-status", b"none").decode()] += 1
