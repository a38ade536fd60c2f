"""A lock for each key, which exists only while it is held or waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)


class Locks(Generic[K]):
    """Locks within this process, by key; other processes are not excluded."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[K, asyncio.Lock] = WeakValueDictionary()

    def of(self, key: K) -> asyncio.Lock:
        """The lock of this ``key``, the same object for all concurrent callers."""
        return self._locks.setdefault(key, asyncio.Lock())

    def __len__(self) -> int:
        """The number of locks that are held or waited for."""
        return len(self._locks)
