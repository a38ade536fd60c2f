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

READ, CHANGED = 16 * 1024 * 1024, 4 * 1024 * 1024
"""Bytes reserved for an answer before its size is known: of a read, and of a change."""

WAIT_SECONDS = 10.0
"""Seconds for which a request waits for bytes."""

RESERVATION = "proxy.held"
"""The key of a request's ``Reservation`` in its scope."""

_UNBOUNDED = nullcontext()


class RequestLimit:
    """Bounds a tenant's concurrent requests in this process: ``most``, 0 for no bound."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def slot(self, tenant: str) -> AbstractContextManager[None]:
        """Occupy one place while the block runs.  Raises ProxyError 503 if all are taken."""
        return self._one(tenant) if self._most else _UNBOUNDED

    @contextmanager
    def _one(self, tenant: str) -> Iterator[None]:
        if self._taken[tenant] >= self._most:
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
    """``most`` bytes, of which one tenant may have half.

    A request of any size is granted if nothing else is taken, so that none waits in vain.  Waiting
    tenants are served round-robin, the requests of a tenant in their order.
    """

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0
        self._of: Counter[str] = Counter()
        self._waiting: dict[str, OrderedDict[WaitingRequest, None]] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        """Waiting tenants whose next request is within their share, in the order of their turns."""

    async def take(self, tenant: str, size: int) -> None:
        """Wait for ``size`` bytes.  Raises ProxyError 503 ``overloaded`` after ``WAIT_SECONDS``."""
        if not self._ready and tenant not in self._waiting and self._fits(tenant, size):
            return self.add(tenant, size)
        one = WaitingRequest(size)
        self._waiting.setdefault(tenant, OrderedDict())[one] = None
        self._ready[tenant] = None
        self._grant()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await one.granted
        except TimeoutError:
            self._leave(tenant, one)
            raise no_room() from None
        except asyncio.CancelledError:
            self._leave(tenant, one)
            raise

    def try_take(self, tenant: str, size: int) -> None:
        """Take ``size`` bytes without waiting.  Raises ProxyError 503 ``overloaded``."""
        if not self._fits(tenant, size):
            raise no_room()
        self.add(tenant, size)

    def add(self, tenant: str, size: int) -> None:
        """Take ``size`` bytes even if there is no room."""
        self._taken += size
        self._of[tenant] += size

    def give_back(self, tenant: str, size: int) -> None:
        self._taken -= size
        self._of[tenant] -= size
        if not self._of[tenant]:
            del self._of[tenant]
        if tenant in self._waiting:
            self._ready[tenant] = None
        self._grant()

    def _grant(self) -> None:
        """Grant waiting requests in turn, as long as there is room."""
        while self._ready:
            tenant = next(iter(self._ready))
            one = next(iter(self._waiting[tenant]))
            if one.granted.cancelled():  # its task was cancelled and will call _leave
                self._remove(tenant, one)
            elif not self._is_within_share(tenant, one.size):
                del self._ready[tenant]  # until it gives something back
            elif self._is_there(one.size):
                self.add(tenant, one.size)
                self._remove(tenant, one)
                one.granted.set_result(None)
            else:
                return

    def _leave(self, tenant: str, one: WaitingRequest) -> None:
        """Stop waiting; give back what was granted concurrently."""
        if one in self._waiting.get(tenant, ()):
            self._remove(tenant, one)
            self._grant()
        elif one.granted.done() and not one.granted.cancelled():
            self.give_back(tenant, one.size)

    def _remove(self, tenant: str, one: WaitingRequest) -> None:
        others = self._waiting[tenant]
        del others[one]
        if others:
            self._ready[tenant] = None
            self._ready.move_to_end(tenant)
        else:
            del self._waiting[tenant]
            self._ready.pop(tenant, None)

    def _fits(self, tenant: str, size: int) -> bool:
        return self._is_within_share(tenant, size) and self._is_there(size)

    def _is_within_share(self, tenant: str, size: int) -> bool:
        had = self._of[tenant]
        return not had or had + size <= self._most // 2

    def _is_there(self, size: int) -> bool:
        return not self._taken or self._taken + size <= self._most


class ByteBudgets:
    """The budgets of a process: of ``most`` bytes (0: unlimited) half for bodies over ``SMALL``, a
    quarter for other bodies, a quarter for answers."""

    def __init__(self, most: int) -> None:
        most = most or sys.maxsize
        self.large, self.small, self.answers = (
            ByteBudget(most // 2),
            ByteBudget(most // 4),
            ByteBudget(most // 4),
        )

    def reservation(self, tenant: str) -> Reservation:
        return Reservation(self, tenant)

    def reserve_for(self, scope: MutableMapping[str, Any], tenant: str) -> Reservation:
        """The Reservation of the request with this scope, until ``release``."""
        held = scope[RESERVATION] = self.reservation(tenant)
        return held


class Reservation:
    """The bytes that one request has reserved, until ``release``."""

    def __init__(self, rooms: ByteBudgets, tenant: str) -> None:
        self._rooms, self._tenant = rooms, tenant
        self._body = self._answer = 0
        self._room = rooms.small

    async def reserve_body(self, size: int) -> None:
        """Reserve ``size`` bytes for the body, instead of those reserved for it before.

        Waits if that is more.  Raises ProxyError 503 ``overloaded`` after ``WAIT_SECONDS``.
        """
        size = _counted(size)
        if size > self._body:
            self.shrink_body(0)
            room = self._rooms.small if size <= SMALL else self._rooms.large
            await room.take(self._tenant, size)
            self._room, self._body = room, size
        else:
            self.shrink_body(size)

    def shrink_body(self, size: int) -> None:
        """Reduce the reservation for the body to at most ``size`` bytes."""
        size = _counted(size)
        if size < self._body:
            self._room.give_back(self._tenant, self._body - size)
            self._body = size

    def grow_body(self, size: int) -> None:
        """Reserve ``size`` bytes for the body with what memory adds, if that is over ``SMALL``.

        Does not wait, since the bytes are in memory already: raises ProxyError 503 ``overloaded``.
        """
        if size <= max(self._body, SMALL):
            return
        self.shrink_body(0)
        self._room = self._rooms.large
        self._room.try_take(self._tenant, size)
        self._body = size

    async def reserve_answer(self, size: int) -> None:
        """Reserve ``size`` bytes for an answer of unknown size.  Raises as ``reserve_body``
        does."""
        await self._rooms.answers.take(self._tenant, size)
        self._answer += size

    def set_answer(self, size: int) -> None:
        """Set the reservation for the answer to its actual ``size``."""
        size = _counted(size)
        if size > self._answer:
            self._rooms.answers.add(self._tenant, size - self._answer)
        elif size < self._answer:
            self._rooms.answers.give_back(self._tenant, self._answer - size)
        self._answer = size

    def release(self) -> None:
        """Release everything."""
        self.shrink_body(0)
        self.set_answer(0)


def _counted(size: int) -> int:
    return size if size > UNCOUNTED else 0


def release(scope: MutableMapping[str, Any]) -> None:
    """Release what the request with this scope has reserved, if anything."""
    held: Reservation | None = scope.pop(RESERVATION, None)
    if held is not None:
        held.release()
