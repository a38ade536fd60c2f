"""Limits a tenant's concurrent requests to each of several upstreams.

Otherwise an upstream that hangs would occupy all of the tenant's places in the proxy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

from proxy.errors import overloaded
from proxy.upstreams.destination import Destination
from proxy.wire.replies import WrappedReply
from proxy.wire.upstream import Reply


class UpstreamSlots:
    """The occupied slots of all tenants at all upstreams."""

    def __init__(self) -> None:
        self._busy: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._busy)

    def take(self, upstream: Destination, tenant: str) -> Callable[[], None]:
        """Take a place; returns a function that frees it, to be called once.  Raises ProxyError 503
        if all are taken."""
        place = upstream.name, tenant
        if self._busy[place] >= upstream.max_concurrent > 0:
            raise overloaded()
        self._busy[place] += 1

        def leave() -> None:
            self._busy[place] -= 1
            if not self._busy[place]:
                del self._busy[place]

        return leave


class SlotReply(WrappedReply):
    """A reply that holds a place until it is closed."""

    def __init__(self, reply: Reply, leave: Callable[[], None]) -> None:
        super().__init__(reply)
        self._leave: Callable[[], None] | None = leave

    def chunks(self) -> AsyncIterator[bytes]:
        return self._reply.chunks()

    async def close(self) -> None:
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()
        await super().close()
