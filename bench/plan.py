"""What is measured and how often.  Pure values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Target = Literal["direct", "floor", "memory floor", "proxy"]
BackEnd = Literal["sqlite", "redis"]


AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Level:
    """So many streams open at once, ``runs`` times; each has ``chunks``, ``interval`` s apart."""

    streams: int
    runs: int
    chunks: int
    interval: float


@dataclass(frozen=True, slots=True)
class Plan:
    """The full measurement by default.

    ``pairs`` requests a row and round, each beside a direct one, and ``afterwards`` seconds in
    which what was recorded is indexed, whose CPU time belongs to the requests; ``sizes`` are the
    stored messages of the sessions, ``api_sizes`` those that are asked in each API, ``floor_sizes``
    those of the memory floor, which sends all that it has;
    ``hot_turns`` turns in one session and ``new_sessions`` of one turn each, ``AT_ONCE`` at once.
    """

    sizes: tuple[int, ...] = (0, 20, 200, 2_000, 20_000)
    api_sizes: tuple[int, ...] = (20, 200)
    floor_sizes: tuple[int, ...] = (0, 20, 200)
    hot_turns: int = 300
    new_sessions: int = 5_000
    rounds: int = 12
    pairs: int = 20
    afterwards: float = 0.8
    levels: tuple[Level, ...] = (
        Level(1, runs=8, chunks=60, interval=0.002),
        Level(64, runs=1, chunks=50, interval=0.02),
        Level(512, runs=1, chunks=15, interval=0.1),
    )
    redis: bool = True

    @property
    def back_ends(self) -> tuple[BackEnd, ...]:
        return ("sqlite", "redis") if self.redis else ("sqlite",)


QUICK = Plan(
    sizes=(0, 200, 20_000),
    api_sizes=(200,),
    floor_sizes=(0, 200),
    hot_turns=100,
    new_sessions=500,
    rounds=6,
    levels=(
        Level(1, runs=6, chunks=60, interval=0.002),
        Level(64, runs=1, chunks=40, interval=0.02),
    ),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.  Without ``store`` nothing is remembered."""

    target: Target
    store: BackEnd | None = None
    size: int = 0

    @property
    def name(self) -> str:
        if self.target == "proxy" and self.store:
            return f"session of {self.size:,}, {self.target_name}"
        if self.store:
            return f"{self.target_name}, session of {self.size:,}"
        return "proxy, no session" if self.target == "proxy" else self.target_name

    @property
    def target_name(self) -> str:
        """The store's where there is one."""
        if self.target == "proxy" and self.store:
            return "SQLite" if self.store == "sqlite" else "Redis"
        return "bare pass-through" if self.target == "floor" else self.target


DIRECT = Row("direct")


def rows(plan: Plan) -> Iterator[Row]:
    """All but the direct one, which each of them is paired with."""
    yield Row("floor")
    yield Row("proxy")
    if plan.redis:
        yield from (Row("memory floor", "redis", size) for size in plan.floor_sizes)
    for store in plan.back_ends:
        for size in plan.sizes:
            yield Row("proxy", store, size)


def sessions(plan: Plan, size: int) -> int:
    """How many sessions of a size there are to be.

    A request adds two messages, so each serves until it has grown by a tenth.
    """
    requests = plan.rounds * plan.pairs + sum(level.streams * level.runs for level in plan.levels)
    return -(-requests // max(1, size // 20))
