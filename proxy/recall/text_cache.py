"""Caches of what is computed from texts and words, which can be cleared together: they reveal what
was said.  They do not know whose a text is.

The list of them belongs to the module, as each cache belongs to its function: these are pure
functions of texts, which are called without any object."""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar
from weakref import WeakSet

T = TypeVar("T")

_ALL: WeakSet[_lru_cache_wrapper[object]] = WeakSet()


def text_cache(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """As ``lru_cache``, for a function of texts or words."""

    def caching(compute: Callable[..., T]) -> _lru_cache_wrapper[T]:
        cached = lru_cache(size)(compute)
        _ALL.add(cached)
        return cached

    return caching


def clear_text_caches() -> None:
    """Clear all of them; what is being computed in another thread may still be added."""
    for cached in list(_ALL):
        cached.cache_clear()
