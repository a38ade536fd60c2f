"""How much is measured.  Pure values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The full measurement by default.

    Requests are compared over ``compared`` turns, behind the ``history`` that a window takes; a
    conversation of ``turns`` for each feature; ``exchanges`` of ``people`` who chat at the same
    time, in each of ``rounds``.
    """

    history: int = 60
    compared: int = 200
    turns: int = 100
    people: int = 8
    exchanges: int = 400
    rounds: int = 4
    redis: bool = True

    @property
    def back_ends(self) -> tuple[str, ...]:
        return ("sqlite", "redis") if self.redis else ("sqlite",)


QUICK = Plan(compared=40, turns=20, exchanges=160, rounds=2)

FACTS = 30
"""Facts that are known from the beginning where requests are compared."""

EXAMPLES = 5
"""Answers that have been found good."""
