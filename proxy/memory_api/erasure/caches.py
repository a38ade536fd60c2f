"""Clears this process's caches of texts, after something was edited or erased.

What was erased must not stay in a cache.  Caches that do not know the tenant of an entry, which are
small, are cleared completely; of others the tenant's entries are removed.
"""

from __future__ import annotations

import asyncio

from proxy.memory.model import SessionKey
from proxy.recall.index_cache import clear_terms_of
from proxy.recall.semantic import vectors
from proxy.recall.text_cache import clear_text_caches
from proxy.summary.attempts import forget_written

CLEARED_AGAIN = 600.0
"""Seconds after which caches are cleared once more.  Whoever had read an erased text by then, in a
thread or for a model that was asked about it, has put it into a cache again."""


def forget_texts(tenant: str) -> None:
    """Clear the caches of this tenant's texts, and of what was computed from them: now and later.
    Called in the event loop."""
    _clear_caches(tenant)
    asyncio.get_running_loop().call_later(CLEARED_AGAIN, _clear_caches, tenant)


def _clear_caches(tenant: str) -> None:
    clear_text_caches()
    vectors.clear_caches(tenant)
    clear_terms_of(tenant)


def forget_session(key: SessionKey) -> None:
    """Drop summaries of a session that are written but not stored yet."""
    forget_written(key)
