"""The marks of what was erased, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proxy.memory.erasure import Subject
from proxy.stores.common.rules import UNMARKED, expiry, forbids, plain


class InMemoryErasures:
    """See :class:`proxy.memory.erasure.Erasures`.  ``clock`` gives Unix seconds, for expiry."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._time = clock
        self._marks: dict[Subject, float] = {}

    async def mark(self, subjects: Sequence[Subject], until: float) -> None:
        self._marks |= dict.fromkeys(map(plain, subjects), until)

    async def unmark(self, subject: Subject, began: float | None = None) -> None:
        if not forbids(self._mark_of([plain(subject)]), began):
            self._marks.pop(plain(subject), None)

    async def wipe(self) -> None:
        """There are no files."""

    async def erased(self, subjects: Sequence[Subject], began: float) -> bool:
        return forbids(self._mark_of(map(plain, subjects)), began)

    def _mark_of(self, subjects: Iterable[Subject]) -> float:
        """The latest mark of these."""
        marks = (self._marks.get(subject, UNMARKED) for subject in subjects)
        return max((mark for mark in marks if expiry(mark) > self._time()), default=UNMARKED)
