"""Makes the store of a URL, and defines what every back end implements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

from proxy.lazy import lazy_import
from proxy.memory.items import Items
from proxy.memory.store import Store
from proxy.memory.usage import Meter
from proxy.recall.index import Index
from proxy.stores.address import read_address
from proxy.stores.sqlite.store import SQLiteMemory, SQLiteStore

if TYPE_CHECKING:
    from proxy.stores.redis import connection as redis_connection
    from proxy.stores.redis import store as redis_store
else:  # 8 MB that SQLite has no use for
    redis_connection = lazy_import("proxy.stores.redis.connection")
    redis_store = lazy_import("proxy.stores.redis.store")


class Backend(Store, Index, Items, Meter, Protocol):
    """All contracts in one.  Every method raises StoreError and nothing else."""

    def with_long_timeout(self, seconds: float) -> Self:
        """The same store with ``seconds`` as the timeout of reads and writes: for background work.

        It is opened and closed separately, while this one is open.
        """
        ...


def open_store(
    url: str,
    *,
    timeout: float,
    commit_timeout: float,
    wait_replicas: int = 0,
    clock: Callable[[], float] = time.time,
    as_is: bool = False,
) -> Backend:
    """The store of a URL, not yet opened.  ``timeout`` bounds reads, ``commit_timeout`` writes.

    ``as_is``: a file is neither made nor brought up to date, only used.
    Raises ValueError for a URL that means no store; the message says what to write.
    """
    address = read_address(url)
    if address.kind == "memory":
        return SQLiteMemory(timeout=timeout, commit_timeout=commit_timeout, clock=clock)
    if address.kind == "sqlite":
        return SQLiteStore(
            address.path, timeout=timeout, commit_timeout=commit_timeout, clock=clock, as_is=as_is
        )
    return redis_store.RedisStore(
        address.name,
        redis_connection.connect(address, timeout),
        one_slot=address.kind != "cluster",
        timeout=timeout,
        commit_timeout=commit_timeout,
        wait_replicas=wait_replicas,
        clock=clock,
    )
