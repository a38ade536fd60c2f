"""Models that are left alone for a while: because they said so, or kept us waiting for nothing.

In this process alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cachetools import LRUCache

from proxy.background.completion import Assignment, Failed, Paused, Refused, Unreadable

MOST = 10_000
"""Models of tenants that a process remembers to have failed."""

LONGEST = 600.0
"""Seconds for which one is left alone that does not say for how long."""


class _Whom(NamedTuple):
    """Who is asked for a tenant, with which key; for one ``feature``, or with "" for any."""

    tenant: str
    place: str
    key: str | None
    model: str
    feature: str = ""


class _Failures(NamedTuple):
    """How often in a row, when last, and until when nothing is asked; times are Unix seconds."""

    times: int = 0
    at: float = -math.inf
    until: float = 0.0


class ModelPauses:
    """What is said with ``Retry-After`` holds for all that a tenant asks this model.

    One that fails in a feature again, and again, is left alone there for as long as it took, and
    longer each time: one that hangs would take a tenant's places, and one that fails at once takes
    nothing.  ``clock`` is in Unix seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: LRUCache[_Whom, _Failures] = LRUCache(MOST)

    def __repr__(self) -> str:
        return f"<ModelPauses of {len(self._known)}>"

    @contextmanager
    def asking(self, assignment: Assignment, model: str) -> Iterator[None]:
        """What is raised inside counts.  Raises Paused where it is too early to ask."""
        everything, here = _whoms(assignment, model)
        began = self._clock()
        until = max(self._of(everything).until, self._of(here).until)
        if until > began:
            raise Paused(until)
        try:
            yield
        except (Refused, Unreadable):  # it has answered
            self._known.pop(here, None)
            raise
        except Failed as failure:
            self._failed(here, began)
            if failure.retry_after:
                now = self._clock()
                self._known[everything] = _Failures(at=now, until=now + failure.retry_after)
            raise
        self._known.pop(here, None)

    def _failed(self, whom: _Whom, began: float) -> None:
        """What was asked before the last failure was known has failed with it."""
        known, now = self._of(whom), self._clock()
        if began >= known.at:
            wait = min(known.times * (now - began), LONGEST)
            self._known[whom] = _Failures(known.times + 1, now, now + wait)

    def _of(self, whom: _Whom) -> _Failures:
        """None where the clock was put back behind the last one: nobody knows how long ago it
        was."""
        known = self._known.get(whom, _Failures())
        return known if known.at <= self._clock() else _Failures()


def _whoms(assignment: Assignment, model: str) -> tuple[_Whom, _Whom]:
    """All that is asked of it, and what this feature asks."""
    whom = _Whom(assignment.tenant, assignment.place, assignment.key, model)
    return whom, whom._replace(feature=assignment.feature)
