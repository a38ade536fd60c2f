"""Is a request another attempt of an exchange that is recorded already?  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.memory.log import open_calls
from proxy.memory.model import Exchange, Snapshot
from proxy.memory.request import Incoming, Intent, visible

RETRY_SECONDS = 120
"""How long after its commit an SDK's automatic retry still means the same exchange."""


def retried_exchange(snapshot: Snapshot, m: Sequence[Incoming], intent: Intent) -> str | None:
    """The exchange that this request is another attempt of."""
    if snapshot.attempt is not None:
        return snapshot.attempt.id
    last = snapshot.last
    again = last is not None and (last.incomplete or _recent_retry(last, intent))
    if last is not None and again and _ends_with(snapshot, m, last.id):
        return last.id
    return _answered_again(snapshot, m)


def _recent_retry(last: Exchange, intent: Intent) -> bool:
    return intent.retry and intent.now - last.created_at < RETRY_SECONDS


def _ends_with(snapshot: Snapshot, m: Sequence[Incoming], exchange: str) -> bool:
    """Does M end with exactly the messages (at least one) that the exchange recorded of its own?"""
    asked = [
        e.card.digest
        for e in snapshot.log
        if e.card.exchange == exchange and e.card.origin == "request"
    ]
    said = [x.digest for x in m if visible(x)]
    return bool(asked) and said[-len(asked) :] == asked


def _answered_again(snapshot: Snapshot, m: Sequence[Incoming]) -> str | None:
    """Tool results that are recorded already, sent again on their own."""
    if not m or m[-1].answers is None or any(x.answers is None for x in m):
        return None
    if any(x.answers in open_calls(snapshot.log) for x in m):
        return None
    for entry in reversed(snapshot.log):
        if entry.card.answers == m[-1].answers:
            return entry.card.exchange if _same_calls(snapshot, m, entry.card.exchange) else None
    return None


def _same_calls(snapshot: Snapshot, m: Sequence[Incoming], exchange: str) -> bool:
    answered = {e.card.answers for e in snapshot.log if e.card.exchange == exchange}
    return {x.answers for x in m} <= answered
