"""Is a request another attempt of an exchange that is recorded already?  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.memory.log import open_calls
from proxy.memory.model import Card, Exchange, Snapshot
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
        e.card for e in snapshot.log if e.card.exchange == exchange and e.card.origin == "request"
    ]
    said = [x for x in m if visible(x)][-len(asked) :]
    if not asked or len(said) != len(asked):
        return False
    return all(_same(mine, card) for mine, card in zip(said, asked, strict=True))


def _same(message: Incoming, card: Card) -> bool:
    """Equal, if need be but for the ids of calls: some clients make new ones for each request."""
    return message.digest == card.digest or bool(card.shape and message.shape == card.shape)


def _answered_again(snapshot: Snapshot, m: Sequence[Incoming]) -> str | None:
    """Tool results that are recorded already, sent again on their own."""
    if not m or m[-1].answers is None or any(x.answers is None for x in m):
        return None
    if not open_calls(snapshot.log).keys().isdisjoint(x.answers for x in m):
        return None
    for entry in reversed(snapshot.log):
        if entry.card.answers == m[-1].answers:
            return entry.card.exchange if _same_calls(snapshot, m, entry.card.exchange) else None
    return None


def _same_calls(snapshot: Snapshot, m: Sequence[Incoming], exchange: str) -> bool:
    answered = {e.card.answers for e in snapshot.log if e.card.exchange == exchange}
    return {x.answers for x in m} <= answered
