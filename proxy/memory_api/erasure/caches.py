"""Clears this process's caches of texts, after something was edited or erased.

What was erased must not stay in a cache.  Caches that do not know the tenant of an entry, which are
small, are cleared completely; of others the tenant's entries are removed.
"""

from __future__ import annotations

from proxy.learning.facts import days, statements
from proxy.memory.model import SessionKey
from proxy.recall import index_cache
from proxy.recall.query import question, words
from proxy.recall.ranking import select
from proxy.recall.semantic import vectors
from proxy.recall.standing import standing
from proxy.summary.attempts import forget_written


def forget_texts(tenant: str) -> None:
    """Clear the caches of this tenant's texts, and of what was computed from them."""
    words.clear_caches()
    question.clear_caches()
    standing.clear_caches()
    select.clear_cache()
    vectors.clear_caches(tenant)
    statements.clear_caches()
    days.clear_cache()
    index_cache.clear_terms_of(tenant)


def forget_session(key: SessionKey) -> None:
    """Drop summaries of a session that are written but not stored yet."""
    forget_written(key)
