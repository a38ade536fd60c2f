"""Erasing for good: the mark that keeps what is older from coming back, and the clock it is set by.

An exchange that was under way when its session or its person was erased, one that waits in the
spool of a host that was down, a summary or a fact that a model was writing: all of them began
before the mark and are refused.  What is learned of a person lies apart from their sessions: what
came of a session that goes meanwhile is taken back.  The mark holds ids and a time, no text.

A clock that is put back would let what begins behind an erasure look older than it, and be refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

STEP = 1e-6
"""Seconds by which a steady clock goes on while its source is behind it."""


class SteadyClock:
    """``source`` may jump; this goes on slowly until the source has caught up."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._last = 0.0

    def __call__(self) -> float:
        self._last = max(self._source(), self._last + STEP)
        return self._last


steady_now = SteadyClock()
"""Of this process."""


MARK_SECONDS = 7 * 24 * 3600
"""How long a mark is kept at least: what waits in a spool for longer is recorded again."""


class Subject(NamedTuple):
    """Who or what is erased: a person of a tenant, or, with ``session``, one conversation."""

    tenant: str
    user: str = ""
    session: str = ""


class Erasures(Protocol):
    """Implemented by every store.  All methods raise StoreError; times are Unix seconds.

    ``commit`` refuses with "erased" an exchange that started at or before the mark of its session,
    of the user it came with, or of the session's owner.  ``put_summary``, ``change_items``,
    ``adopt_items`` and ``restore`` refuse what was made from things read at or before the mark
    (their ``since``).
    """

    async def mark(self, subjects: Sequence[Subject], until: float) -> None:
        """From now on nothing of these that began at or before ``until`` is written; in one round
        trip.

        Takes the place of earlier marks; ``until`` may lie ahead, while an erasure is under way.
        """
        ...

    async def erased(self, subjects: Sequence[Subject], began: float) -> bool:
        """Would what began then be refused, because one of these is marked?"""
        ...

    async def unmark(self, subject: Subject, began: float | None = None) -> None:
        """Let everything be written again: an import has brought it back.

        A mark that forbids what ``began`` then stays: it was erased again meanwhile.
        """
        ...

    async def wipe(self) -> None:
        """See to it that nothing of what was removed before is in the store's own files any more.

        Raises StoreInUse where others read them all the while: then it is to be called again.
        Redis writes its files itself, and has nothing of it in them after their next rewrite.
        """
        ...
