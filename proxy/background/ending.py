"""What becomes of a piece of work once its job has ended.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from proxy.background.completion import Failed, NoCredential, Refused, Spent

Outcome = Literal["finished", "refused", "failed", "put_off", "lost"]
"""``put_off`` is nobody's failure; ``lost``: the lease was, and the work is somebody else's."""

NOT_HERE = 60.0
"""Seconds until work is looked at again whose credential no process has."""

DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after failures: ``first`` seconds, twice as long each time, to ``most``."""

    first: float
    most: float

    def seconds(self, attempts: int, chance: float) -> float:
        """After ``attempts`` earlier failures; ``chance`` (0 to 1) takes off up to a quarter."""
        longest = min(self.first * 2.0 ** min(attempts, DOUBLINGS), self.most)
        return longest * (1 - chance / 4)


class Ending(NamedTuple):
    """``due`` in Unix seconds is when to look again; None: not before it is asked for."""

    outcome: Outcome
    due: float | None = None


def ending_of(error: BaseException, now: float, wait: float) -> Ending:
    """What an exception of a job means; ``wait`` are the seconds to wait after a failure."""
    match error:
        case Refused():
            return Ending("refused")
        case Spent(until=until):
            return Ending("put_off", until)
        case NoCredential():
            return Ending("put_off", now + NOT_HERE)
        case Failed(retry_after=least) if least is not None:
            return Ending("failed", now + max(wait, least))
        case _:
            return Ending("failed", now + wait)
