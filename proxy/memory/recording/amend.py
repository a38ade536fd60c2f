"""Makes amendments of what a reply brings after its exchange was recorded: see ``commit``.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from proxy.chat.reply.answer import Choice
from proxy.memory.erasure import steady_now
from proxy.memory.model import (
    Amendment,
    Card,
    Commit,
    Draft,
    Exchange,
    LoadOptions,
    MessageEdit,
    Snapshot,
)
from proxy.memory.recording.commit import Count, answer_draft, compact_choice


def extended_answer(before: Sequence[Choice], now: Sequence[Choice]) -> Choice | None:
    """Choice 0 if it went on after a finish reason (some upstreams send one in every chunk), else
    None."""
    old = next((answer for answer in before if answer.index == 0), None)
    new = next((answer for answer in now if answer.index == 0), None)
    if old is None or new is None or (old.body, old.wire) == (new.body, new.wire):
        return None
    return new


def amend(
    commit: Commit,
    answers: Sequence[Choice],
    usage: bytes | None,
    count: Count,
    more: Choice | None = None,
) -> Amendment | None:
    """The amendment for what a reply brought after its commit, None without any.  ``more``: see
    ``extended_answer``."""
    exchange = commit.exchange
    base = len(commit.drafts) - 1
    drafts: list[Draft] = []
    if commit.reserved and commit.drafts:
        turn = commit.drafts[-1].turn
        further = (a for a in answers if 0 < a.index <= commit.reserved)
        drafts = [answer_draft(a, turn, base + a.index, exchange, count) for a in further]
    edited = _edited_answer(commit, more, count) if more is not None else None
    if not (drafts or edited) and (usage is None or exchange.usage is not None):
        return None
    return Amendment(exchange=exchange.id, usage=usage, drafts=tuple(drafts), edited=edited)


def _edited_answer(commit: Commit, more: Choice, count: Count) -> MessageEdit | None:
    for index, said in enumerate(commit.drafts):
        if _is_answer(said.card):
            new = answer_draft(more, said.turn, index, commit.exchange, count)
            was = said.body if said.wire is None else said.wire
            return MessageEdit(card=new.card, body=new.body, wire=new.wire, replaced_wire=was)
    return None


def _is_answer(card: Card) -> bool:
    """Whether it is choice 0 of its exchange."""
    return card.origin == "response" and card.choice == 0


class ExtendedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The final choice 0 of a deferred exchange: see ``extended_answer``.

    ``replaced_wire`` is the JSON of what was recorded of it, as it came.
    """

    exchange: Exchange
    answer: Choice
    replaced_wire: bytes = msgspec.field(name="was")

    @classmethod
    def of(cls, exchange: Exchange, before: Sequence[Choice], answer: Choice) -> ExtendedAnswer:
        old = next(each for each in before if each.index == 0)
        was = old.body if old.wire is None else old.wire
        return cls(exchange=exchange, answer=compact_choice(answer), replaced_wire=was)

    @property
    def load_options(self) -> LoadOptions:
        return LoadOptions(self.exchange.profile, whole=True)

    def amendment(self, snapshot: Snapshot, count: Count) -> Amendment | None:
        """The amendment; None if the answer is not in the log."""
        exchange = self.exchange
        own = (e.card for e in snapshot.log if e.card.exchange == exchange.id)
        card = next(filter(_is_answer, own), None)
        if card is None:
            return None
        new = answer_draft(self.answer, "", 0, exchange, count)
        edited = MessageEdit(
            card=replace(new.card, id=card.id),
            body=new.body,
            wire=new.wire,
            replaced_wire=self.replaced_wire,
        )
        return Amendment(exchange=exchange.id, edited=edited)


def late_answer(
    snapshot: Snapshot, answer: Choice, usage: bytes | None, count: Count
) -> Amendment | None:
    """Adds the answer to the snapshot's ``attempt``, an exchange that was recorded without one.

    None if there is no such exchange, it has its answer, or its question is superseded.
    """
    exchange = snapshot.attempt
    own = [e for e in snapshot.log if exchange is not None and e.card.exchange == exchange.id]
    if exchange is None or not own or len(own) >= exchange.size:
        return None
    began = own[-1].position.turn
    turn = next((e.card.id for e in snapshot.log if e.position.seq == began), own[0].card.id)
    now = replace(exchange, created_at=steady_now())
    draft = answer_draft(answer, turn, exchange.size - 1, now, count)
    return Amendment(exchange=exchange.id, usage=usage, drafts=(draft,))
