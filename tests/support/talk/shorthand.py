"""Conversations in shorthand: ``u1 a1(c1) t1:c1 a2`` and the values of the domain made from it.

``u`` and ``p`` are user messages, ``a`` and ``q`` assistant ones, ``t`` tool results. ``a1(c1,c2)``
makes calls, ``t1:c1`` answers one.  ``a1*`` is a1 re-rendered, ``a1+`` is a1 and more.  Entries of
the log: ``q`` was made up by the client, ``a`` came from the upstream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry, Exchange, Position, Snapshot
from proxy.memory.reconciliation.match import AnswerLikeness
from proxy.memory.reconciliation.plan import Plan

_WORD = re.compile(
    r"(?P<name>(?P<kind>[a-z])\w*['*+]?(?:~\w+)?)(?:\((?P<calls>[^)]*)\))?(?::(?P<answers>\w+))?"
)
_ROLES = {"u": "user", "p": "user", "a": "assistant", "q": "assistant", "t": "tool", "s": "user"}


def message(
    name: str,
    role: str,
    calls: tuple[str, ...] = (),
    answers: str | None = None,
    *,
    blank: bool = False,
) -> ChatMessage:
    """A message of a request; its digest is its name.  ``c1~k`` is ``c1`` under other ids."""
    return ChatMessage(
        raw=name.encode(),
        role=role,
        digest=name,
        shape=name.partition("~")[0] if calls or answers is not None else "",
        calls=calls,
        answers=answers,
        text=name,
        blank=blank,
    )


def talk(shorthand: str) -> list[ChatMessage]:
    return [_talk(word) for word in shorthand.split()]


def _talk(word: str) -> ChatMessage:
    found = _WORD.fullmatch(word)
    assert found, word
    calls = tuple(filter(None, (found["calls"] or "").split(",")))
    return message(found["name"], _ROLES[found["kind"]], calls, found["answers"])


@dataclass
class Log:
    """A session in the making: one exchange per call of ``add``."""

    entries: list[Entry] = field(default_factory=list)
    last: Exchange | None = None

    def add(self, shorthand: str, *, incomplete: bool = False, at: float = 0.0) -> Log:
        exchange = f"x{len(self.entries)}"
        words = talk(shorthand)
        for index, word in enumerate(words):
            answer = word.role == "assistant" and not word.digest.startswith("q")
            card = Card(
                id=f"{exchange}.{index}",
                role=word.role,
                tokens=10,
                digest=word.digest,
                calls=word.calls,
                answers=word.answers,
                shape=word.shape,
                origin="response" if answer else "request",
                evidence=answer,
                incomplete=answer and incomplete and index == len(words) - 1,
            )
            seq = len(self.entries) + 1
            self.entries.append(Entry(Position(self._turn(card, seq), seq), card))
        self.last = Exchange(
            id=exchange, profile="", started_at=at, created_at=at, incomplete=incomplete
        )
        return self

    def _turn(self, card: Card, seq: int) -> int:
        if card.role == "user" or not self.entries:
            return seq
        return self.entries[-1].position.turn

    def snapshot(self) -> Snapshot:
        return Snapshot(
            exists=bool(self.entries),
            log=tuple(self.entries),
            last=self.last,
            bodies={e.card.id: e.card.digest.encode() for e in self.entries},
            messages=len(self.entries),
            tokens=10 * len(self.entries),
        )


def log(shorthand: str) -> Log:
    """A log with one exchange per turn: a user message begins the next."""
    made = Log()
    exchange: list[str] = []
    for word in shorthand.split():
        if exchange and (word[0] in "up" or (word[0] == "t" and exchange[-1][0] == "a")):
            made.add(" ".join(exchange))
            exchange = []
        exchange.append(word)
    return made.add(" ".join(exchange)) if exchange else made


def names(plan_part: Sequence[Entry | int], m: Sequence[ChatMessage]) -> str:
    return " ".join(m[x].digest if isinstance(x, int) else x.card.digest for x in plan_part)


def recorded(plan: Plan, m: Sequence[ChatMessage]) -> str:
    return " ".join(m[fresh.i].digest for fresh in plan.new_messages)


def rerendered(message: ChatMessage, card: Card) -> AnswerLikeness:
    """``a1*`` is ``a1`` in another dress, ``a1+`` goes on behind it."""
    dresses: dict[str, AnswerLikeness] = {f"{card.digest}*": "same", f"{card.digest}+": "continued"}
    return dresses.get(message.digest, "")
