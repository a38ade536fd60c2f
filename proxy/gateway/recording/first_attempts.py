"""When requests were first made, of which nothing is recorded: an SDK's retry of one that failed
repeats no exchange, even if the last one had the same words, or the same result of another call."""

from __future__ import annotations

from collections import OrderedDict

from msgspec.structs import replace

from proxy.gateway.exchange import ChatExchange

MOST = 16_384
"""They take 200 bytes each.  Of more the oldest are forgotten; their retries are told from the last
exchange by what memory has alone, as those are that reach another worker."""


class FirstAttempts:
    """Those of one worker."""

    def __init__(self) -> None:
        self._began: OrderedDict[int, float] = OrderedDict()

    def placed(self, exchange: ChatExchange, attempt: int) -> ChatExchange:
        """A retry knows of its first attempt; what is none is noted as one."""
        if exchange.context.identity.retry:
            intent = replace(exchange.intent, first=self._began.get(attempt, 0.0))
            return replace(exchange, intent=intent)
        self._began[attempt] = exchange.began
        self._began.move_to_end(attempt)
        if len(self._began) > MOST:
            self._began.popitem(last=False)
        return exchange

    def recorded(self, attempt: int) -> None:
        self._began.pop(attempt, None)


def attempt_at(exchange: ChatExchange) -> int:
    """What attempts at the same are known by: their session and how their requests end."""
    ends = [message.digest for message in exchange.request.messages[-1:]]
    return hash((exchange.context.key, *ends))
