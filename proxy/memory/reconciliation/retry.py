"""Telling another attempt of a recorded exchange from the same words said once more.  Pure.

An SDK repeats a request also where its attempts have failed and nothing is recorded of them.  Then
the last exchange is one that the client has seen the answer of, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry, Exchange, Snapshot
from proxy.memory.reconciliation.match import (
    Intent,
    align_without_answers,
    entries_after,
    is_visible,
    open_calls,
)

RETRY_SECONDS = 120
"""How long after its commit an SDK's automatic retry still means the same exchange."""


def retried_exchange(snapshot: Snapshot, m: Sequence[ChatMessage], intent: Intent) -> str | None:
    """The exchange that this request is another attempt of; none that it goes on from."""
    if snapshot.attempt is not None:
        return snapshot.attempt.id
    if entries_after(snapshot.log, intent.on) is not None:
        return None
    last = snapshot.last
    again = last is not None and (_broken_off(last, intent) or _recent_retry(last, intent))
    if last is not None and again and _says_the_same(snapshot, m, last.id):
        return last.id
    return _answered_again(snapshot, m)


def entries_of_attempt(log: Sequence[Entry], exchange: str) -> list[Entry]:
    """What an exchange has in the log; and what follows it in its turn, if that answers its calls:
    results would be left of which nobody knows the call."""
    own = [e for e in log if e.card.exchange == exchange]
    calls = {call for e in own for call in e.card.calls}
    if not calls:
        return own
    end = own[-1].position
    behind = [e for e in log if e.position.turn == end.turn and e.position > end]
    return [*own, *behind] if any(e.card.answers in calls for e in behind) else own


def _broken_off(last: Exchange, intent: Intent) -> bool:
    """Its words may be asked again; who takes turns back has seen it, and counts it among them."""
    return last.incomplete and not intent.rewind


def _recent_retry(last: Exchange, intent: Intent) -> bool:
    """A retry has the key of what it repeats, or none where that has none."""
    recent = intent.now - last.created_at < RETRY_SECONDS
    return intent.retry and recent and not last.keyed


def _says_the_same(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    return _asks_again(snapshot, m, exchange) or _says_nothing(snapshot, m, exchange)


def _says_nothing(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Is M blank, of which nothing is recorded, and the exchange an answer to such?"""
    if any(is_visible(x) for x in m):
        return False
    origins = {e.card.origin for e in snapshot.log if e.card.exchange == exchange}
    return origins == {"response"}


def _asks_again(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Does M end with exactly the messages (at least one) that the exchange recorded of its own,
    and not behind its reply?"""
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
    """Equal, if need be but for the ids of calls, which some clients make up for each request; not
    so where it answers a call that waits."""
    return message.digest == card.digest or (
        message.answers not in waiting and _is_alike(message, card)
    )


def _is_alike(message: ChatMessage, card: Card) -> bool:
    return message.digest == card.digest or bool(card.shape and message.shape == card.shape)


def _equal_suffix(said: Sequence[ChatMessage], cards: Sequence[Card]) -> int:
    """How many messages are the same at the end of both."""
    pairs = zip(reversed(said), reversed(cards), strict=False)
    return sum(1 for _ in takewhile(lambda pair: _is_alike(*pair), pairs))


def _answered_again(snapshot: Snapshot, m: Sequence[ChatMessage]) -> str | None:
    """Tool results that are recorded already, sent again on their own, or behind what their turn
    had before."""
    if not m or m[-1].answers is None or any(x.role == "assistant" for x in m):
        return None
    if not open_calls(snapshot.log).keys().isdisjoint(x.answers for x in m):
        return None
    for entry in reversed(snapshot.log):
        if entry.card.answers == m[-1].answers:
            exchange = entry.card.exchange
            alone = all(x.answers is not None for x in m)
            again = _same_calls if alone else _goes_on_without
            return exchange if again(snapshot, m, exchange) else None
    return None


def _goes_on_without(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    """Does M go on as clients do that leave out answers, if the exchange is taken back?"""
    gone = {entry.card.id for entry in entries_of_attempt(snapshot.log, exchange)}
    log = [entry for entry in snapshot.log if entry.card.id not in gone]
    return bool(align_without_answers(log, m).matches)


def _same_calls(snapshot: Snapshot, m: Sequence[ChatMessage], exchange: str) -> bool:
    answered = {e.card.answers for e in snapshot.log if e.card.exchange == exchange}
    return {x.answers for x in m} <= answered
