"""Recorded conversations and questions about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

By = Literal["u", "a"]
"""The user, or the assistant."""

OPENING, CLOSING = "Hello.", "OK."
"""What stands in where a session begins with the assistant, or ends with the user."""


class Turn(NamedTuple):
    id: str
    by: By
    text: str


class Pair(NamedTuple):
    """A user message and the answer to it."""

    question: str
    answer: str


class Repairs(NamedTuple):
    """What was done to the labels of a set.

    ``repaired`` labels were read another way, ``dropped`` ones lead nowhere, ``questions`` had no
    evidence left and are not asked.  ``left_out`` are questions that the protocol does not ask.
    """

    repaired: int = 0
    dropped: int = 0
    questions: int = 0
    left_out: int = 0

    def plus(self, other: Repairs) -> Repairs:
        return Repairs(*(a + b for a, b in zip(self, other, strict=True)))


NO_REPAIRS = Repairs()
LEFT_OUT = Repairs(left_out=1)


@dataclass(frozen=True, slots=True)
class Session:
    """``date`` is as people write dates; it goes before the first user message."""

    id: str
    date: str
    turns: tuple[Turn, ...]

    def pairs(self) -> list[Pair]:
        """The session as a chat: neighbouring turns of one side are one message."""
        said: list[tuple[list[str], list[str]]] = []
        for turn in self.turns:
            if not said or (turn.by == "u" and said[-1][1]):
                said.append(([], []))
            said[-1][turn.by == "a"].append(turn.text)
        pairs = [Pair("\n".join(us) or OPENING, "\n".join(them) or CLOSING) for us, them in said]
        if pairs and self.date:
            pairs[0] = pairs[0]._replace(question=f"[{self.date}] {pairs[0].question}")
        return pairs


@dataclass(frozen=True, slots=True)
class Question:
    """``evidence`` are ids of turns, each with alternatives ("D1:3|D2:4"); none: nothing is to be
    recalled.  ``spans`` has the part of a turn that matters, where it is not all of it.  ``before``
    are messages that the client sends before the question, user and assistant in turn.
    """

    id: str
    kind: str
    text: str
    evidence: tuple[str, ...] = ()
    spans: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def texts(self) -> dict[str, str]:
        """What each turn says, by id."""
        return {turn.id: turn.text for session in self.sessions for turn in session.turns}


@dataclass(frozen=True, slots=True)
class Collection:
    """People of a set of conversations; ``name`` is that of the file or folder."""

    name: str
    people: tuple[Person, ...]
    repairs: Repairs = NO_REPAIRS
    dataset: str = "own form"

    def part(self, people: int, questions: int) -> Collection:
        """So many people, and so many questions of each, evenly spread; 0 for all."""
        chosen = (
            replace(person, questions=spread(person.questions, questions))
            for person in spread(self.people, people)
        )
        return replace(self, people=tuple(chosen))

    @property
    def questions(self) -> int:
        return sum(len(person.questions) for person in self.people)

    @property
    def exchanges(self) -> int:
        sessions = (session for person in self.people for session in person.sessions)
        return sum(len(session.pairs()) for session in sessions)


def spread(items: Sequence[T], count: int) -> tuple[T, ...]:
    """``count`` of the items, the same ones every time; 0 for all."""
    if not count or count >= len(items):
        return tuple(items)
    return tuple(items[place * len(items) // count] for place in range(count))
