"""The marks of what was erased, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from proxy.memory.erasure import Subject
from proxy.stores.common.rules import NO_MARK, expiry, is_refused, mark_subject


class InMemoryErasures:
    """See :class:`proxy.memory.erasure.Erasures`.  ``clock`` gives Unix seconds, for expiry."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._time = clock
        self._marks: dict[Subject, float] = {}

    async def mark(self, subjects: Sequence[Subject], until: float) -> None:
        self._marks |= dict.fromkeys(map(mark_subject, subjects), until)

    async def unmark(self, subject: Subject, began: float | None = None) -> None:
        if not is_refused(self._mark_of([mark_subject(subject)]), began):
            self._marks.pop(mark_subject(subject), None)

    async def purge_files(self) -> None:
        """There are no files."""

    async def is_erased(self, subjects: Sequence[Subject], began: float) -> bool:
        return is_refused(self._mark_of(map(mark_subject, subjects)), began)

    def _mark_of(self, subjects: Iterable[Subject]) -> float:
        """The latest mark of these."""
        marks = (self._marks.get(subject, NO_MARK) for subject in subjects)
        return max((mark for mark in marks if expiry(mark) > self._time()), default=NO_MARK)
