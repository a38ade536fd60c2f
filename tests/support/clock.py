"""A clock that stands still until a test moves it."""

from __future__ import annotations


class Clock:
    """Call it for the time in Unix seconds; set ``now`` to change it."""

    def __init__(self, now: float = 5000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
