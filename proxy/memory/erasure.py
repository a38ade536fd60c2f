"""Erasure marks, which keep erased data from being written again, and the clock for them.

When a session or a person is erased, others may still be writing: an exchange in progress, one in
the spool of a host that was down, a summary or a fact that a model is writing.  All of these began
before the mark, so the store refuses them.  Learned memory is stored apart from sessions: what is
learned from a session that is erased meanwhile is undone.  A mark holds ids and a time, no text.

The clock never goes back: else what begins after an erasure could look older, and be refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

STEP = 1e-6
"""Seconds by which a steady clock advances with each call while its source is behind it."""


class SteadyClock:
    """A clock that never goes back: if ``source`` does, it advances slowly meanwhile."""

    def __init__(self, source: Callable[[], float] = time.time) -> None:
        self._source = source
        self._last = 0.0

    def __call__(self) -> float:
        self._last = max(self._source(), self._last + STEP)
        return self._last


steady_now = SteadyClock()
"""Of this process."""


MARK_SECONDS = 7 * 24 * 3600
"""The shortest time that a mark is kept: what waits in a spool for longer is recorded again."""


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
        """Refuse all writes for these subjects that began at or before ``until``, from now on; in
        one round trip.

        Replaces earlier marks; ``until`` may be in the future while an erasure is in progress.
        """
        ...

    async def is_erased(self, subjects: Sequence[Subject], began: float) -> bool:
        """Whether a write that began then would be refused because of a mark of these subjects."""
        ...

    async def unmark(self, subject: Subject, began: float | None = None) -> None:
        """Remove the mark, as an import has brought the subject back.

        With ``began`` only if the mark does not refuse what began then: else it was erased again.
        """
        ...

    async def purge_files(self) -> None:
        """Remove data that was deleted before from the store's own files too.

        Raises StoreInUse if others are reading them: then call it again.  Redis rewrites its files
        itself, so that deleted data is gone after the next rewrite.
        """
        ...
