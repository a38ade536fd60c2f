"""The time at which exchanges and erasures begin and end: Unix seconds that never go back.

A clock that is put back would let what begins behind an erasure look older than it, and be refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable

STEP = 1e-6
"""Seconds by which it goes on while the clock is behind it."""


class SteadyClock:
    """``source`` may jump; this goes on slowly until the source has caught up."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._last = 0.0

    def __call__(self) -> float:
        self._last = max(self._source(), self._last + STEP)
        return self._last


steady = SteadyClock()
"""Of this process."""
