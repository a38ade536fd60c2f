"""Going back to an answer that another branch has.  Pure.

An answer that stands where calls are stored may be another form of what was said behind them, from
a client that shows no calls.  Or it is the one that was there before they were made: then they are
what the client has left.  Only superseded messages show which, and they are fetched in doubt alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from proxy.chat.message import ChatMessage
from proxy.memory.archive import Message
from proxy.memory.model import Entry
from proxy.memory.reconciliation.align import is_call_or_result
from proxy.memory.reconciliation.plan import Plan


class DoubtfulAnswer(msgspec.Struct, frozen=True, gc=False):
    """A plan takes an ``answer`` of the request, its digest, for another form of one that stands
    behind calls which the request leaves out; ``calls`` is the seq of the first of them, and
    ``behind`` the digest of what they stand behind, ``place`` its seq."""

    answer: str
    calls: int
    behind: str
    place: int


def doubtful_answers(
    log: Sequence[Entry], plan: Plan, m: Sequence[ChatMessage]
) -> list[DoubtfulAnswer]:
    """The answers that may be either, nearly always none.  One that M ends with is a prefill, and
    in no doubt."""
    edited = {
        fresh.joins: m[fresh.i].digest
        for fresh in plan.fresh
        if fresh.replaces and fresh.joins and not m[fresh.i].calls and fresh.i < len(m) - 1
    }
    return list(_doubtful_answers(log, plan, edited)) if edited else []


def _doubtful_answers(
    log: Sequence[Entry], plan: Plan, edited: dict[str, str]
) -> Iterator[DoubtfulAnswer]:
    told = {entry.card.id for entry in plan.resent}
    for j, entry in enumerate(log):
        if entry.card.id not in edited:
            continue
        k = j
        while k and is_call_or_result(log[k - 1].card) and log[k - 1].card.id not in told:
            k -= 1
        if 0 < k < j:
            before = log[k - 1]
            answer, calls = edited[entry.card.id], log[k].position.seq
            yield DoubtfulAnswer(answer, calls, before.card.digest, before.position.seq)


def answers_before_calls(
    passed: Sequence[DoubtfulAnswer], superseded: Iterable[Message]
) -> frozenset[str]:
    """Digests of the answers that were said before the calls were made."""
    said = sorted(superseded, key=lambda x: x.seq)
    return frozenset(doubt.answer for doubt in passed if _was_before_calls(doubt, said))


def _was_before_calls(doubt: DoubtfulAnswer, said: Sequence[Message]) -> bool:
    """Has it answered what the calls stand behind, or the same in another branch?"""
    asked: Message | None = None
    for x in said:
        if x.seq >= doubt.calls:
            break
        if x.card.role == "user":
            asked = x
        elif x.card.role == "assistant" and x.card.digest == doubt.answer:
            if x.seq > doubt.place and (asked is None or asked.seq < doubt.place):
                return True
            if asked is not None and asked.card.digest == doubt.behind:
                return True
    return False
