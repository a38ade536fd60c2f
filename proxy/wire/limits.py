"""Limits for a tenant and for all tenants together: concurrent requests, and bytes in memory.

Bytes are those that a process buffers whole: request bodies, and answers of the memory API that the
client has not received yet.  Small ones are not counted.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from proxy.errors import no_room, overloaded

UNCOUNTED = 64 * 1024
"""Bodies and answers of up to so many bytes are not counted."""

SMALL = 1024 * 1024
"""Bodies of up to so many bytes have a budget of their own, which larger ones cannot use up."""

READ_RESERVE, CHANGE_RESERVE = 16 * 1024 * 1024, 4 * 1024 * 1024
"""Bytes reserved for an answer before its size is known: of a read, and of a change."""

WAIT_SECONDS = 10.0
"""Seconds for which a request waits for bytes."""

SCOPE_KEY = "proxy.held"
"""The key of a request's ``Reservation`` in its scope."""

_UNBOUNDED = nullcontext()


class RequestLimit:
    """Allows a tenant ``max_requests`` concurrent requests in this process; 0: any number."""

    def __init__(self, max_requests: int) -> None:
        self._max = max_requests
        self._taken: Counter[str] = Counter()

    def slot(self, tenant: str) -> AbstractContextManager[None]:
        """Occupy one place while the block runs.  Raises ProxyError 503 if all are taken."""
        return self._occupied(tenant) if self._max else _UNBOUNDED

    @contextmanager
    def _occupied(self, tenant: str) -> Iterator[None]:
        if self._taken[tenant] >= self._max:
            raise overloaded()
        self._taken[tenant] += 1
        try:
            yield
        finally:
            self._taken[tenant] -= 1
            if not self._taken[tenant]:
                del self._taken[tenant]


class WaitingRequest:
    """A request that waits for ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class ByteBudget:
    """Grants at most ``max_bytes`` at a time, to one tenant at most half of them.

    A request of any size is granted if nothing else is taken, so that none waits in vain.  Waiting
    tenants are served round-robin, the requests of a tenant in their order.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max, self._taken = max_bytes, 0
        self._taken_by: Counter[str] = Counter()
        self._waiting: dict[str, OrderedDict[WaitingRequest, None]] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        """Waiting tenants whose next request is within their share, in the order of their turns."""

    async def take(self, tenant: str, size: int) -> None:
        """Wait for ``size`` bytes.  Raises ProxyError 503 ``overloaded`` after ``WAIT_SECONDS``."""
        if not self._ready and tenant not in self._waiting and self._fits(tenant, size):
            return self.add(tenant, size)
        waiter = WaitingRequest(size)
        self._waiting.setdefault(tenant, OrderedDict())[waiter] = None
        self._ready[tenant] = None
        self._grant()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await waiter.granted
        except TimeoutError:
            self._stop_waiting(tenant, waiter)
            raise no_room() from None
        except asyncio.CancelledError:
            self._stop_waiting(tenant, waiter)
            raise

    def try_take(self, tenant: str, size: int) -> None:
        """Take ``size`` bytes without waiting.  Raises ProxyError 503 ``overloaded``."""
        if not self._fits(tenant, size):
            raise no_room()
        self.add(tenant, size)

    def add(self, tenant: str, size: int) -> None:
        """Take ``size`` bytes even if there is no room."""
        self._taken += size
        self._taken_by[tenant] += size

    def give_back(self, tenant: str, size: int) -> None:
        self._taken -= size
        self._taken_by[tenant] -= size
        if not self._taken_by[tenant]:
            del self._taken_by[tenant]
        if tenant in self._waiting:
            self._ready[tenant] = None
        self._grant()

    def _grant(self) -> None:
        """Grant waiting requests in turn, as long as there is room."""
        while self._ready:
            tenant = next(iter(self._ready))
            waiter = next(iter(self._waiting[tenant]))
            if waiter.granted.cancelled():  # its task was cancelled and will call _stop_waiting
                self._remove(tenant, waiter)
            elif not self._is_within_share(tenant, waiter.size):
                del self._ready[tenant]  # until it gives something back
            elif self._is_free(waiter.size):
                self.add(tenant, waiter.size)
                self._remove(tenant, waiter)
                waiter.granted.set_result(None)
            else:
                return

    def _stop_waiting(self, tenant: str, waiter: WaitingRequest) -> None:
        """Stop waiting; give back what was granted concurrently."""
        if waiter in self._waiting.get(tenant, ()):
            self._remove(tenant, waiter)
            self._grant()
        elif waiter.granted.done() and not waiter.granted.cancelled():
            self.give_back(tenant, waiter.size)

    def _remove(self, tenant: str, waiter: WaitingRequest) -> None:
        others = self._waiting[tenant]
        del others[waiter]
        if others:
            self._ready[tenant] = None
            self._ready.move_to_end(tenant)
        else:
            del self._waiting[tenant]
            self._ready.pop(tenant, None)

    def _fits(self, tenant: str, size: int) -> bool:
        return self._is_within_share(tenant, size) and self._is_free(size)

    def _is_within_share(self, tenant: str, size: int) -> bool:
        taken = self._taken_by[tenant]
        return not taken or taken + size <= self._max // 2

    def _is_free(self, size: int) -> bool:
        return not self._taken or self._taken + size <= self._max


class ByteBudgets:
    """The budgets of a process: of ``max_bytes`` (0: unlimited) half for bodies over ``SMALL``, a
    quarter for other bodies, a quarter for answers."""

    def __init__(self, max_bytes: int) -> None:
        max_bytes = max_bytes or sys.maxsize
        self.large = ByteBudget(max_bytes // 2)
        self.small, self.answers = ByteBudget(max_bytes // 4), ByteBudget(max_bytes // 4)

    def reservation(self, tenant: str) -> Reservation:
        return Reservation(self, tenant)

    def reserve_for(self, scope: MutableMapping[str, Any], tenant: str) -> Reservation:
        """The Reservation of the request with this scope, until ``release``."""
        reservation = scope[SCOPE_KEY] = self.reservation(tenant)
        return reservation


class Reservation:
    """The bytes that one request has reserved, until ``release``."""

    def __init__(self, budgets: ByteBudgets, tenant: str) -> None:
        self._budgets, self._tenant = budgets, tenant
        self._body = self._answer = 0
        self._body_budget = budgets.small

    async def reserve_body(self, size: int) -> None:
        """Reserve ``size`` bytes for the body, instead of those reserved for it before.

        Waits if that is more.  Raises ProxyError 503 ``overloaded`` after ``WAIT_SECONDS``.
        """
        size = _counted_size(size)
        if size > self._body:
            self.shrink_body(0)
            budget = self._budgets.small if size <= SMALL else self._budgets.large
            await budget.take(self._tenant, size)
            self._body_budget, self._body = budget, size
        else:
            self.shrink_body(size)

    def shrink_body(self, size: int) -> None:
        """Reduce the reservation for the body to at most ``size`` bytes."""
        size = _counted_size(size)
        if size < self._body:
            self._body_budget.give_back(self._tenant, self._body - size)
            self._body = size

    def grow_body(self, size: int) -> None:
        """Reserve ``size`` bytes for the body with what memory adds, if that is over ``SMALL``.

        Does not wait, since the bytes are in memory already: raises ProxyError 503 ``overloaded``.
        """
        if size <= max(self._body, SMALL):
            return
        self.shrink_body(0)
        self._body_budget = self._budgets.large
        self._body_budget.try_take(self._tenant, size)
        self._body = size

    async def reserve_answer(self, size: int) -> None:
        """Reserve ``size`` bytes for an answer of unknown size.  Raises as ``reserve_body``
        does."""
        await self._budgets.answers.take(self._tenant, size)
        self._answer += size

    def set_answer(self, size: int) -> None:
        """Set the reservation for the answer to its actual ``size``."""
        size = _counted_size(size)
        if size > self._answer:
            self._budgets.answers.add(self._tenant, size - self._answer)
        elif size < self._answer:
            self._budgets.answers.give_back(self._tenant, self._answer - size)
        self._answer = size

    def release(self) -> None:
        """Release everything."""
        self.shrink_body(0)
        self.set_answer(0)


def _counted_size(size: int) -> int:
    return size if size > UNCOUNTED else 0


def release(scope: MutableMapping[str, Any]) -> None:
    """Release what the request with this scope has reserved, if anything."""
    reservation: Reservation | None = scope.pop(SCOPE_KEY, None)
    if reservation is not None:
        reservation.release()
