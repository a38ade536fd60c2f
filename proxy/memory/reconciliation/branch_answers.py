"""Distinguishes an altered answer from one of another branch.  Pure.

An answer in the place of stored tool calls may be another form of the answer after them, from a
client that does not send calls; or an answer of another branch, from before the calls.  Superseded
messages show which; they are loaded only in this case.
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
    out; ``previous`` and ``place`` are digest and seq of the message before them.
    """

    answer: str
    calls: int
    previous: str
    place: int


def doubtful_answers(
    log: Sequence[Entry], plan: Plan, m: Sequence[ChatMessage]
) -> list[DoubtfulAnswer]:
    """The doubtful answers, nearly always none.  An answer at the end of M is a prefill and never
    doubtful."""
    edited = {
        fresh.joins: m[fresh.i].digest
        for fresh in plan.new_messages
        if fresh.replaces and fresh.joins and not m[fresh.i].calls and fresh.i < len(m) - 1
    }
    return list(_find_doubtful(log, plan, edited)) if edited else []


def _find_doubtful(
    log: Sequence[Entry], plan: Plan, edited: dict[str, str]
) -> Iterator[DoubtfulAnswer]:
    resent = {entry.card.id for entry in plan.resent}
    for j, entry in enumerate(log):
        if entry.card.id not in edited:
            continue
        k = j
        while k and is_call_or_result(log[k - 1].card) and log[k - 1].card.id not in resent:
            k -= 1
        if 0 < k < j:
            before = log[k - 1]
            answer, calls = edited[entry.card.id], log[k].position.seq
            yield DoubtfulAnswer(answer, calls, before.card.digest, before.position.seq)


def answers_before_calls(
    doubts: Sequence[DoubtfulAnswer], superseded: Iterable[Message]
) -> frozenset[str]:
    """Digests of the doubtful answers that are among superseded messages from before the calls."""
    said = sorted(superseded, key=lambda x: x.seq)
    return frozenset(doubt.answer for doubt in doubts if _was_before_calls(doubt, said))


def _was_before_calls(doubt: DoubtfulAnswer, said: Sequence[Message]) -> bool:
    """Whether it was an answer to the message before the calls, or to an equal one in another
    branch."""
    asked: Message | None = None
    for x in said:
        if x.seq >= doubt.calls:
            break
        if x.card.role == "user":
            asked = x
        elif x.card.role == "assistant" and x.card.digest == doubt.answer:
            if x.seq > doubt.place and (asked is None or asked.seq < doubt.place):
                return True
            if asked is not None and asked.card.digest == doubt.previous:
                return True
    return False
