"""Pauses calls to a model after ``Retry-After``, or after repeated failures; per process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cachetools import LRUCache

from proxy.background.completion import Assignment, Failed, Paused, Refused, Unreadable

MAX_KNOWN = 10_000
"""Failing models of tenants that are remembered."""

MAX_PAUSE_SECONDS = 600.0
"""The longest pause without ``Retry-After``, in seconds."""


class _Target(NamedTuple):
    """A model that is called for a tenant at an endpoint, with a key, for a ``feature`` ("":
    any)."""

    tenant: str
    endpoint: str
    key: str | None
    model: str
    feature: str = ""


class _Failures(NamedTuple):
    """Consecutive failures, the time of the last, and the end of the pause (Unix seconds)."""

    times: int = 0
    at: float = -math.inf
    until: float = 0.0


class ModelPauses:
    """The pauses of all tenants' models.  ``clock`` is in Unix seconds.

    ``Retry-After`` pauses all calls of a tenant to the model.  Repeated failures pause those of one
    feature, for the time that the failing call took, times the number of failures: a model that
    hangs would occupy the tenant's places, one that fails at once does not.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures: LRUCache[_Target, _Failures] = LRUCache(MAX_KNOWN)

    def __repr__(self) -> str:
        return f"<ModelPauses of {len(self._failures)}>"

    @contextmanager
    def count_failures(self, assignment: Assignment, model: str) -> Iterator[None]:
        """Count the failure that the block raises.  Raises Paused instead of running the block."""
        model_target, feature_target = _targets(assignment, model)
        began = self._clock()
        until = max(self._failures_of(model_target).until, self._failures_of(feature_target).until)
        if until > began:
            raise Paused(until)
        try:
            yield
        except (Refused, Unreadable):  # it has answered
            self._failures.pop(feature_target, None)
            raise
        except Failed as failure:
            self._count_failure(feature_target, began)
            if failure.retry_after:
                now = self._clock()
                self._failures[model_target] = _Failures(at=now, until=now + failure.retry_after)
            raise
        self._failures.pop(feature_target, None)

    def _count_failure(self, target: _Target, began: float) -> None:
        """Count a failure, unless the call began before the last failure: then it is the same."""
        failures, now = self._failures_of(target), self._clock()
        if began >= failures.at:
            wait = min(failures.times * (now - began), MAX_PAUSE_SECONDS)
            self._failures[target] = _Failures(failures.times + 1, now, now + wait)

    def _failures_of(self, target: _Target) -> _Failures:
        """No failures where the clock was set back behind the last one: its age is unknown."""
        failures = self._failures.get(target, _Failures())
        return failures if failures.at <= self._clock() else _Failures()


def _targets(assignment: Assignment, model: str) -> tuple[_Target, _Target]:
    """The targets of all calls to the model, and of this feature's."""
    target = _Target(assignment.tenant, assignment.endpoint, assignment.key, model)
    return target, target._replace(feature=assignment.feature)
