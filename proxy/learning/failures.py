"""Batches and improvements of which nothing came: how often, and when one is tried again, for all
sessions of its person or tenant together."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from proxy.background.completion import Failed
from proxy.background.runner import Backoff
from proxy.learning.batch import Batch
from proxy.memory.items import ItemOwner

REMEMBERED = 1000
"""Batches and improvements that a process remembers to have failed."""

UNREADABLE_ATTEMPTS = 3
"""How often a batch is put off for answers that nobody can read; then it is skipped."""


class BatchName(NamedTuple):
    """What a batch begins with, for whichever session it is read, and whatever was said since."""

    shelf: ItemOwner
    feature: str
    session: str
    message: str
    left: int


def batch_name(feature: str, batch: Batch) -> BatchName:
    first = batch.messages[0]
    return BatchName(batch.shelf, feature, first.session, first.message, len(first.text))


class Improvement(NamedTuple):
    """Of something that is the tenant's."""

    shelf: ItemOwner
    feature: str
    subject: str


class Failures(msgspec.Struct):
    """Of one of them; ``until`` (Unix seconds) it is not tried again."""

    unreadable: int = 0
    failed: int = 0
    until: float = 0.0


class BatchFailures:
    def __init__(self) -> None:
        self._known: LRUCache[BatchName | Improvement, Failures] = LRUCache(REMEMBERED)
        self._in_a_row: LRUCache[tuple[ItemOwner, str], int] = LRUCache(REMEMBERED)

    def __repr__(self) -> str:
        return f"<BatchFailures of {len(self._known)}>"

    def check(self, name: BatchName, now: float) -> None:
        """Raises Failed where it is too early to try this batch again."""
        wait = self.wait(name, now)
        if wait > 0:
            raise Failed("what has failed waits for its next try", wait)

    def wait(self, name: BatchName | Improvement, now: float) -> float:
        """Seconds until it may be tried again."""
        known = self._known.get(name)
        return known.until - now if known is not None else 0.0

    def unreadable(self, name: BatchName, backoff: Backoff, now: float) -> bool:
        """Count an answer that nobody can read, and let the batch wait; False if it has waited
        often enough.

        A wait is twice the last one of any batch of the person until one is learned: an upstream
        whose failures have status 200 must not cost one batch after the other.
        """
        known, reader = self._of(name), (name.shelf, name.feature)
        in_a_row = self._in_a_row.get(reader, 0)
        self._in_a_row[reader] = in_a_row + 1
        if known.unreadable >= UNREADABLE_ATTEMPTS:
            return False
        known.until = now + backoff.seconds(in_a_row, 1.0)
        known.unreadable += 1
        return True

    def learned(self, name: BatchName) -> None:
        """The model can be read."""
        self._in_a_row.pop((name.shelf, name.feature), None)

    def failed(
        self, name: BatchName | Improvement, failure: Failed, backoff: Backoff, now: float
    ) -> None:
        """Let it wait no longer than the session that has tried it."""
        known = self._of(name)
        known.until = now + max(backoff.seconds(known.failed, 1.0), failure.retry_after or 0.0)
        known.failed += 1

    def forget(self, name: Improvement) -> None:
        """It has gone well."""
        self._known.pop(name, None)

    def _of(self, name: BatchName | Improvement) -> Failures:
        return self._known.setdefault(name, Failures())
