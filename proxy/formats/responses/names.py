"""Names of responses that the proxy keeps for upstreams that keep none.  Pure.

A name is made of a reference, which leads to the session (see ``proxy.memory.naming``), and the 120
random bits of the exchange: who knows it was told it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EXCHANGE = "ex_"
"""What ids of exchanges begin with; 20 characters follow."""

_ANSWER = re.compile(r"resp_([0-9a-f]{32})([A-Za-z0-9_-]{20})")


class AnswerName(NamedTuple):
    """Where a response is: the reference of its session, and the id of its exchange."""

    reference: str
    exchange: str

    def __str__(self) -> str:
        return f"resp_{self.reference}{self.exchange.removeprefix(EXCHANGE)}"


def read_answer_name(name: object) -> AnswerName | None:
    """None for all but names of ours."""
    found = _ANSWER.fullmatch(name) if isinstance(name, str) else None
    return AnswerName(found[1], EXCHANGE + found[2]) if found else None
