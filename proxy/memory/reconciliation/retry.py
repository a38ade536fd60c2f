"""Distinguishes another attempt of a recorded exchange from the same words said again.  Pure.

An SDK also retries requests that failed and of which nothing was recorded.  Then the client has
seen the answer of the last exchange, so that this stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry, Exchange, Snapshot
from proxy.memory.reconciliation.align import is_alike
from proxy.memory.reconciliation.match import (
    Intent,
    align_without_answers,
    entries_after,
    is_visible,
    open_calls,
)

RETRY_SECONDS = 120
"""Seconds after a commit for which an SDK's automatic retry means that exchange."""


def retried_exchange(snapshot: Snapshot, m: Sequence[ChatMessage], intent: Intent) -> str | None:
    """The exchange that this request repeats, None without one; never one that it continues."""
    if snapshot.attempt is not None:
        return snapshot.attempt.id
    if entries_after(snapshot.log, intent.continued_answer) is not None:
        return None
    last = snapshot.last
    again = last is not None and (_was_broken_off(last, intent) or _is_recent_retry(last, intent))
    if last is not None and again and _same_request(snapshot, m, last.id):
        return last.id
    return _resent_results(snapshot, m)


def entries_of_attempt(log: Sequence[Entry], exchange: str) -> list[Entry]:
    """The entries of an exchange in the log; with those after it in its turn if they answer its
    calls, as results would be left without their call."""
    own = [e for e in log if e.card.exchange == exchange]
    calls = {call for e in own for call in e.card.calls}
    if not calls:
        return own
    end = own[-1].position
    later = [e for e in log if e.position.turn == end.turn and e.position > end]
    return [*own, *later] if any(e.card.answers in calls for e in later) else own


def _was_broken_off(last: Exchange, intent: Intent) -> bool:
    """Whether it was broken off, so that a repetition is a retry.  A request that rewinds has seen
    it, and counts it as a turn."""
    return last.incomplete and not intent.rewind


def _is_recent_retry(last: Exchange, intent: Intent) -> bool:
    """Whether it may be an SDK's retry of an exchange without an Idempotency-Key, which would
    otherwise be sent again."""
    recent = intent.now - last.created_at < RETRY_SECONDS
    return intent.retry and recent and not last.has_idempotency_key


def _same_request(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    return _repeats_messages(snapshot, m, exchange) or _both_blank(snapshot, m, exchange)


def _both_blank(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Whether M is blank, so that nothing of it is recorded, and so was the exchange's request."""
    if any(is_visible(x) for x in m):
        return False
    origins = {e.card.origin for e in snapshot.log if e.card.exchange == exchange}
    return origins == {"response"}


def _repeats_messages(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Whether M ends with exactly the messages (at least one) that the exchange recorded of its
    request, and these do not follow its reply."""
    came = [e.card for e in sorted(snapshot.log, key=lambda e: e.position.seq) if not e.card.blank]
    own = [n for n, x in enumerate(came) if x.exchange == exchange and x.origin == "request"]
    said = [x for x in m if is_visible(x)]
    before, asked = said[: -len(own)], said[-len(own) :]
    if not own or len(asked) != len(own):
        return False
    waiting = open_calls(snapshot.log).keys()
    if not all(_is_same(x, came[n], waiting) for x, n in zip(asked, own, strict=True)):
        return False
    return _equal_suffix(before, came) <= _equal_suffix(before, came[: own[0]])


def _is_same(message: ChatMessage, card: Card, waiting: AbstractSet[str]) -> bool:
    """Whether they are equal, or differ only in ids of calls, which some clients make up for each
    request; in the latter case not if it answers an open call."""
    return message.digest == card.digest or (
        message.answers not in waiting and is_alike(message, card)
    )


def _equal_suffix(said: Sequence[ChatMessage], cards: Sequence[Card]) -> int:
    """The number of equal messages at the end of both."""
    pairs = zip(reversed(said), reversed(cards), strict=False)
    return sum(1 for _ in takewhile(lambda pair: is_alike(*pair), pairs))


def _resent_results(snapshot: Snapshot, m: Sequence[ChatMessage]) -> str | None:
    """The exchange whose tool results are sent again, alone or after the earlier messages of their
    turn."""
    if not m or m[-1].answers is None or any(x.role == "assistant" for x in m):
        return None
    if not open_calls(snapshot.log).keys().isdisjoint(x.answers for x in m):
        return None
    for entry in reversed(snapshot.log):
        if entry.card.answers == m[-1].answers:
            exchange = entry.card.exchange
            alone = all(x.answers is not None for x in m)
            again = _same_calls if alone else _can_continue_without
            return exchange if again(snapshot, m, exchange) else None
    return None


def _can_continue_without(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Whether M, as of a client that leaves out answers, continues the log without the exchange."""
    gone = {entry.card.id for entry in entries_of_attempt(snapshot.log, exchange)}
    log = [entry for entry in snapshot.log if entry.card.id not in gone]
    return bool(align_without_answers(log, m).matches)


def _same_calls(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    answered = {e.card.answers for e in snapshot.log if e.card.exchange == exchange}
    return {x.answers for x in m} <= answered
