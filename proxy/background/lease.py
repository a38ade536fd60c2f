"""Holding a piece of work for as long as its job runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from proxy.memory.store import Queue, StoreError
from proxy.memory.work import Work

LEASE = 60.0
"""Seconds after which the work of a killed process is another's."""

RENEWAL = 20.0
"""Seconds between renewals."""

RETRY = 5.0
"""Seconds to the next try where the store did not renew, and how long before its end a lease is
given up: nobody must begin while the job still runs."""


class LeaseLost(Exception):
    """The work is somebody else's now."""


@asynccontextmanager
async def held(queue: Queue, work: Work, clock: Callable[[], float]) -> AsyncIterator[None]:
    """Renew a claim that was just made until ``LEASE``; what runs inside is cancelled without it.

    Raises LeaseLost.
    """
    try:
        async with asyncio.timeout(None) as patience:
            renewing = _renew(queue, work, clock, patience)
            keeper = asyncio.create_task(renewing, name="background lease")
            try:
                yield
            finally:
                keeper.cancel()
                await asyncio.wait({keeper})
    except TimeoutError:
        if patience.expired():
            raise LeaseLost from None
        raise


async def _renew(
    queue: Queue, work: Work, clock: Callable[[], float], patience: asyncio.Timeout
) -> None:
    """Renew for as long as that is possible, then end the patience with the job."""
    until, pause = clock() + LEASE, RENEWAL
    while clock() + RETRY < until:
        await asyncio.sleep(pause)
        now = clock()
        try:
            if not await queue.extend(work, now + LEASE):
                break
            until, pause = now + LEASE, RENEWAL
        except StoreError:
            pause = RETRY
    patience.reschedule(0)
