"""What the runner runs: one job for each kind of work."""

from __future__ import annotations

from typing import Protocol

from proxy.memory.work import Work


class Job(Protocol):
    """Knows what there is to do for a session; a piece of work only says where to look."""

    def ready(self, work: Work) -> bool:
        """Can this process do it: is the credential there that it needs?"""
        ...

    async def run(self, work: Work) -> float | None:
        """Do all there is to do now.

        The time (Unix seconds) to look again, None: not before it is asked for again.  What has
        been done stays done whatever is raised: Refused (never tried again), Failed, NoCredential,
        Spent, StoreError (all put off).
        """
        ...
