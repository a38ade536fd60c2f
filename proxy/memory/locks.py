"""A lock for each of many things, kept only while somebody holds it or waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)


class Locks(Generic[K]):
    """Who changes what in this process takes turns; other processes are not in it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[K, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: K) -> asyncio.Lock:
        """The same for all who ask for this ``key`` at the same time."""
        return self._locks.setdefault(key, asyncio.Lock())

    def __len__(self) -> int:
        """Those that somebody holds or waits for."""
        return len(self._locks)
