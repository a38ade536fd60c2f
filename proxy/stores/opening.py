"""Choosing the store that a URL means."""

from __future__ import annotations

import time
from collections.abc import Callable

from proxy.stores.address import read_address
from proxy.stores.backend import Backend
from proxy.stores.inmemory import InMemoryStore
from proxy.stores.redis import RedisStore
from proxy.stores.redis_connect import connect
from proxy.stores.sqlite import SQLiteStore


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
        return InMemoryStore(clock)
    if address.kind == "sqlite":
        return SQLiteStore(
            address.path, timeout=timeout, commit_timeout=commit_timeout, clock=clock, as_is=as_is
        )
    return RedisStore(
        address.name,
        connect(address, timeout),
        one_slot=address.kind != "cluster",
        timeout=timeout,
        commit_timeout=commit_timeout,
        wait_replicas=wait_replicas,
        clock=clock,
    )
