"""Tells an altered answer from one that the client goes back to.  Pure.

An answer in the place of stored tool calls may be another form of the answer after them, from a
client that does not send calls.  Or it is an answer of another branch, from before the calls were
made.  Only superseded messages show which; they are loaded only in this case.
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
    """A request's answer that a plan takes for another form of a stored one after tool calls.

    ``answer`` is its digest; ``calls`` the seq of the first of the calls, which the request leaves
    out; ``behind`` and ``place`` are digest and seq of the message before them.
    """

    answer: str
    calls: int
    behind: str
    place: int


def doubtful_answers(
    log: Sequence[Entry], plan: Plan, m: Sequence[ChatMessage]
) -> list[DoubtfulAnswer]:
    """The answers in doubt, nearly always none.  An answer at the end of M is a prefill, never in
    doubt."""
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
    """Digests of those answers that superseded messages have from before the calls."""
    said = sorted(superseded, key=lambda x: x.seq)
    return frozenset(doubt.answer for doubt in passed if _was_before_calls(doubt, said))


def _was_before_calls(doubt: DoubtfulAnswer, said: Sequence[Message]) -> bool:
    """Was it an answer to the message before the calls, or to an equal one in another branch?"""
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
