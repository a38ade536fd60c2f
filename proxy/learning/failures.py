"""Batches that could not be learned: how often, and when one is tried again, for all sessions of
its person together."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from proxy.background.completion import Failed
from proxy.background.runner import Backoff
from proxy.learning.batch import Batch
from proxy.memory.items import ItemOwner

REMEMBERED = 1000
"""Batches that a process remembers to have failed."""


class BatchName(NamedTuple):
    """What a batch begins with, for whichever session it is read, and whatever was said since."""

    shelf: ItemOwner
    feature: str
    session: str
    message: str
    left: int


def batch_name(feature: str, batch: Batch) -> BatchName:
    first = batch.said[0]
    return BatchName(batch.shelf, feature, first.session, first.message, len(first.text))


class Failures(msgspec.Struct):
    """Of one batch; ``until`` (Unix seconds) it is not tried again."""

    unreadable: int = 0
    failed: int = 0
    until: float = 0.0


class BatchFailures:
    def __init__(self) -> None:
        self._known: LRUCache[BatchName, Failures] = LRUCache(REMEMBERED)

    def __repr__(self) -> str:
        return f"<BatchFailures of {len(self._known)}>"

    def check(self, name: BatchName, now: float) -> None:
        """Raises Failed where it is too early to try this batch again."""
        known = self._known.get(name)
        if known is not None and known.until > now:
            raise Failed("what has failed waits for its next try", known.until - now)

    def unreadable(self, name: BatchName) -> int:
        """Count an answer that nobody can read: how many there were before."""
        known = self._of(name)
        known.unreadable += 1
        return known.unreadable - 1

    def failed(self, name: BatchName, failure: Failed, backoff: Backoff, now: float) -> None:
        """Let it wait no longer than the session that has tried it."""
        known = self._of(name)
        known.until = now + max(backoff.seconds(known.failed, 1.0), failure.retry_after or 0.0)
        known.failed += 1

    def _of(self, name: BatchName) -> Failures:
        return self._known.setdefault(name, Failures())
