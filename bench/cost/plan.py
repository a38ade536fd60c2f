"""How much is measured.  Pure values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """The full measurement by default.

    One user with ``passages``, another store with ``users`` of ``each`` passages, and a user of
    ``chat`` passages who chats: ``pairs`` of requests.  ``asked`` questions a row, ``exchanges``
    indexed one by one.
    """

    passages: int = 100_000
    users: int = 10_000
    each: int = 100
    chat: int = 2_000
    asked: int = 300
    exchanges: int = 100
    pairs: int = 300
    redis: bool = True

    @property
    def back_ends(self) -> tuple[str, ...]:
        return ("sqlite", "redis") if self.redis else ("sqlite",)


QUICK = Plan(passages=10_000, users=300, asked=100, exchanges=30, pairs=100)

SESSION = 100
"""Messages of a session: some hundred sessions hold what a person says in years."""
