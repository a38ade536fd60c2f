"""First attempts of which nothing is recorded: an SDK's retry of one that failed repeats no
exchange, even if the last one had the same words, or the same result of another call."""

from __future__ import annotations

from typing import NamedTuple

from cachetools import LRUCache
from msgspec.structs import replace

from proxy.gateway.exchange import ChatExchange
from proxy.memory.reconciliation.retry import RETRY_SECONDS

MOST = 16_384
"""They take 300 bytes each.  Of more the oldest are forgotten: whether a retry of theirs repeats
the last exchange is then told by what is stored alone, as for one that reaches another worker."""

AT_ONCE = 8
"""Of the same session and words: so many callers may have failed, and not asked again yet."""


class NotedAttempt(NamedTuple):
    """One at a request with these words in this session; ``began`` is 0 for a retry."""

    at: int
    began: float = 0.0


class FirstAttempts:
    """Those of one worker."""

    def __init__(self, most: int = MOST) -> None:
        self._unrecorded: LRUCache[int, tuple[float, ...]] = LRUCache(most)

    def placed(self, exchange: ChatExchange) -> tuple[ChatExchange, NotedAttempt | None]:
        """A first attempt is noted; a retry of one that failed is as good as a first attempt.

        Not so with a key: that tells itself what a request repeats.
        """
        identity, at = exchange.context.identity, attempt_at(exchange)
        if identity.idempotency_key is not None:
            return exchange, None
        began = exchange.began
        failed = [x for x in self._unrecorded.get(at, ()) if began - x < RETRY_SECONDS]
        if not identity.retry:
            self._unrecorded[at] = tuple([*failed, began][-AT_ONCE:])
            return exchange, NotedAttempt(at, began)
        if failed:
            exchange = replace(exchange, intent=replace(exchange.intent, retry=False))
        return exchange, NotedAttempt(at)

    def recorded(self, attempt: NotedAttempt) -> None:
        """It is not outstanding any more; by a retry the one that has failed longest ago."""
        began = list(self._unrecorded.pop(attempt.at, ()))
        if began:
            began.remove(attempt.began if attempt.began in began else began[0])
        if began:
            self._unrecorded[attempt.at] = tuple(began)


def attempt_at(exchange: ChatExchange) -> int:
    """What attempts at the same are known by: their session and how their requests end."""
    ends = [message.digest for message in exchange.request.messages[-1:]]
    return hash((exchange.context.key, *ends))
