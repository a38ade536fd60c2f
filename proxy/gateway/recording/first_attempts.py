"""Remembers first attempts that have not been recorded.

An SDK's retry of such an attempt is not a retry of the last recorded exchange, even if that had the
same messages.
"""

from __future__ import annotations

from typing import NamedTuple

from cachetools import LRUCache
from msgspec.structs import replace

from proxy.gateway.exchange import ChatExchange
from proxy.memory.reconciliation.retry import RETRY_SECONDS

MAX_ATTEMPTS = 16_384
"""Entries of 300 bytes; the oldest are dropped.  For a retry without an entry, or one that reaches
another worker, only what is stored decides."""

MAX_PENDING = 8
"""Failed attempts of the same session and message that are remembered."""


class PendingAttempt(NamedTuple):
    """An attempt; ``key`` is its ``request_hash``, ``began`` (Unix seconds) is 0 for a retry."""

    key: int
    began: float = 0.0


class FirstAttempts:
    """The attempts of one worker process."""

    def __init__(self, max_attempts: int = MAX_ATTEMPTS) -> None:
        self._unrecorded: LRUCache[int, tuple[float, ...]] = LRUCache(max_attempts)

    def register(self, exchange: ChatExchange) -> tuple[ChatExchange, PendingAttempt | None]:
        """Remember a first attempt, or make the retry of a failed one a first attempt.

        Nothing is done for a request with an idempotency key, which identifies retries itself.
        """
        identity, key = exchange.context.identity, request_hash(exchange)
        if identity.idempotency_key is not None:
            return exchange, None
        began = exchange.began
        failed = [x for x in self._unrecorded.get(key, ()) if began - x < RETRY_SECONDS]
        if not identity.retry:
            self._unrecorded[key] = tuple([*failed, began][-MAX_PENDING:])
            return exchange, PendingAttempt(key, began)
        if failed:
            exchange = replace(exchange, intent=replace(exchange.intent, retry=False))
        return exchange, PendingAttempt(key)

    def forget(self, attempt: PendingAttempt) -> None:
        """Forget an attempt that was recorded; for a retry, the oldest failed attempt."""
        began = list(self._unrecorded.pop(attempt.key, ()))
        if began:
            began.remove(attempt.began if attempt.began in began else began[0])
        if began:
            self._unrecorded[attempt.key] = tuple(began)


def request_hash(exchange: ChatExchange) -> int:
    """The hash that attempts at the same request share: of session and last message."""
    last = [message.digest for message in exchange.request.messages[-1:]]
    return hash((exchange.context.key, *last))
