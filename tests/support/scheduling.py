"""Which of several test processes runs what, and what they begin with."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling

FIRST = ("browser", "clients", "e2e", "faults", "api", "bench", "docs", "test_server.py", "gateway")
"""What takes minutes in one piece: begun late, it would be waited for by one process alone."""


class ByFile(LoadGroupScheduling):  # type: ignore[misc]  # no types
    """The tests of a file stay together like those of a group: what they share is started once.

    Each test by itself, as xdist has them, are thousands of pieces, and xdist goes through all of
    them after each.
    """

    def _split_scope(self, nodeid: str) -> str:
        return str(super()._split_scope(nodeid)).partition("::")[0]


def rank(part: str) -> int:
    """The place in the order of a folder or file of ``tests``."""
    return FIRST.index(part) if part in FIRST else len(FIRST)
