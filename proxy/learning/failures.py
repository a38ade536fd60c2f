"""Counts failures of batches and improvements, and says when each may be tried again; one count for
all sessions of a person or tenant."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from cachetools import LRUCache

from proxy.background.completion import Failed
from proxy.background.runner import Backoff
from proxy.learning.batch import Batch
from proxy.memory.items import ItemOwner

MAX_REMEMBERED = 1000
"""Failed batches and improvements that a process remembers."""

UNREADABLE_ATTEMPTS = 3
"""How often a batch is retried after unreadable answers before it is skipped."""


class BatchKey(NamedTuple):
    """Identifies a batch by the first message in it, for whichever session it is read; ``left`` is
    the number of that one's unread characters."""

    owner: ItemOwner
    feature: str
    session: str
    message: str
    left: int


def batch_key(feature: str, batch: Batch) -> BatchKey:
    first = batch.messages[0]
    return BatchKey(batch.owner, feature, first.session, first.id, len(first.text))


class ImprovementKey(NamedTuple):
    """Identifies an improvement of something that belongs to a tenant."""

    owner: ItemOwner
    feature: str
    subject: str


class Failures(msgspec.Struct):
    """The failures of one batch or improvement; it is not tried again before ``until`` (Unix
    seconds)."""

    unreadable: int = 0
    failed: int = 0
    until: float = 0.0


class BatchFailures:
    def __init__(self) -> None:
        self._known: LRUCache[BatchKey | ImprovementKey, Failures] = LRUCache(MAX_REMEMBERED)
        self._in_a_row: LRUCache[tuple[ItemOwner, str], int] = LRUCache(MAX_REMEMBERED)

    def __repr__(self) -> str:
        return f"<BatchFailures of {len(self._known)}>"

    def check(self, key: BatchKey, now: float) -> None:
        """Raises Failed if it is too early to try this batch again."""
        seconds_left = self.seconds_left(key, now)
        if seconds_left > 0:
            raise Failed("what has failed waits for its next try", seconds_left)

    def seconds_left(self, key: BatchKey | ImprovementKey, now: float) -> float:
        """Seconds until it may be tried again."""
        known = self._known.get(key)
        return known.until - now if known is not None else 0.0

    def count_unreadable(self, key: BatchKey, backoff: Backoff, now: float) -> bool:
        """Count an unreadable answer; False if the batch has had too many and is to be skipped.

        The wait doubles with each unreadable answer for the person until one is readable: an
        upstream that reports failures with status 200 must not make all batches be skipped.
        """
        known, reader = self._failures_of(key), (key.owner, key.feature)
        in_a_row = self._in_a_row.get(reader, 0)
        self._in_a_row[reader] = in_a_row + 1
        if known.unreadable >= UNREADABLE_ATTEMPTS:
            return False
        known.until = now + backoff.seconds(in_a_row, 1.0)
        known.unreadable += 1
        return True

    def reset_backoff(self, key: BatchKey) -> None:
        """Reset the person's wait: an answer was readable."""
        self._in_a_row.pop((key.owner, key.feature), None)

    def count_failure(
        self, key: BatchKey | ImprovementKey, failure: Failed, backoff: Backoff, now: float
    ) -> None:
        """Count a temporary failure, and wait as long as the job that had it."""
        known = self._failures_of(key)
        known.until = now + max(backoff.seconds(known.failed, 1.0), failure.retry_after or 0.0)
        known.failed += 1

    def clear(self, key: ImprovementKey) -> None:
        """Forget the failures of an improvement that succeeded."""
        self._known.pop(key, None)

    def _failures_of(self, key: BatchKey | ImprovementKey) -> Failures:
        return self._known.setdefault(key, Failures())
