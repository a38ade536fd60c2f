"""Ids of responses that the proxy stores for upstreams without state.  Pure.

An id consists of the session's reference (see ``proxy.memory.naming``) and the 120 random bits of
the exchange, so it cannot be guessed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EXCHANGE = "ex_"
"""The prefix of exchange ids; 20 characters follow."""

_ANSWER = re.compile(r"resp_([0-9a-f]{32})([A-Za-z0-9_-]{20})")


class ResponseId(NamedTuple):
    """A response's id: the reference of its session, and the id of its exchange."""

    reference: str
    exchange: str

    def __str__(self) -> str:
        return f"resp_{self.reference}{self.exchange.removeprefix(EXCHANGE)}"


def parse_response_id(name: object) -> ResponseId | None:
    """Parse an id; None if it is not one of the proxy's."""
    match = _ANSWER.fullmatch(name) if isinstance(name, str) else None
    return ResponseId(match[1], EXCHANGE + match[2]) if match else None
