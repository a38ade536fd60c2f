"""How much of something one tenant may have at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from proxy.errors import overloaded

_ROOM = nullcontext()


class Places:
    """So many for each tenant, in this process; 0 is any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def one(self, tenant: str) -> AbstractContextManager[None]:
        """One of the tenant's places.  Raises ProxyError 503 if all are taken."""
        return self._one(tenant) if self._most else _ROOM

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
