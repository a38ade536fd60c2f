"""The marks of one erasure: ahead of time while it goes on, then of its end."""

from __future__ import annotations

from collections.abc import Callable

from proxy.memory.erasure import Erasures, Subject

LEASE = 60.0
"""Seconds that marks lie ahead: what an erasure that was cut off leaves runs out by itself."""

RENEWAL = 20.0
"""Seconds after which they are set anew."""


class Marks:
    """What began before the end is refused meanwhile, so that nothing that a request has loaded
    comes back behind the erasure.  ``clock`` gives Unix seconds.  All methods raise StoreError.
    """

    def __init__(self, erasures: Erasures, clock: Callable[[], float]) -> None:
        self._erasures, self._clock = erasures, clock
        self._subjects: dict[Subject, None] = {}
        self._renew_at = clock() + RENEWAL

    @property
    def sessions(self) -> list[str]:
        """Those that have been marked."""
        return [subject.session for subject in self._subjects if subject.session]

    async def put(self, subject: Subject) -> None:
        """Mark one more, and the others anew where it is time."""
        self._subjects[subject] = None
        await self._erasures.mark(subject, self._clock() + LEASE)
        await self.renew()

    async def renew(self) -> None:
        """To be called often enough: nothing between two calls may last as long as a lease."""
        now = self._clock()
        if now < self._renew_at:
            return
        self._renew_at = now + RENEWAL
        for subject in self._subjects:
            await self._erasures.mark(subject, self._clock() + LEASE)

    async def settle(self) -> float:
        """The end, in Unix seconds.  What begins behind this call is written again; of what begins
        while it lasts, what finds its mark lowered already.
        """
        end = self._clock()
        for subject in self._subjects:
            await self._erasures.mark(subject, end)
        return end
