"""Recorded conversations and questions about them, and how they are read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from bench.recall import locomo

T = TypeVar("T")

OPENING, CLOSING = "Hello.", "OK."
"""What stands in where a session begins with the assistant, or ends with the user."""


class Turn(NamedTuple):
    id: str
    by: Literal["u", "a"]
    text: str


class Pair(NamedTuple):
    """A user message and the answer to it."""

    question: str
    answer: str


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
    """People, and what had to be done to their labels (see :mod:`bench.recall.locomo`)."""

    name: str
    people: tuple[Person, ...]
    repairs: locomo.Repairs = locomo.NO_REPAIRS

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


def load(path: Path) -> Collection:
    """LoCoMo's own JSON, or our JSONL form.

    Raises ValueError where it is neither, or a question's evidence is no turn of its person.
    """
    text, repairs = path.read_text(encoding="utf-8"), locomo.NO_REPAIRS
    try:
        if text.lstrip().startswith("["):
            samples, repairs = locomo.convert(json.loads(text))
        else:
            samples = [json.loads(line) for line in text.splitlines() if line.strip()]
        people = tuple(map(_person, samples))
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not a file of conversations: {error!r}") from error
    return Collection(path.stem, people, repairs)


def _person(record: Mapping[str, Any]) -> Person:
    sessions = tuple(
        Session(one["sid"], one.get("date") or "", tuple(Turn(*turn) for turn in one["turns"]))
        for one in record["sessions"]
    )
    person = Person(record["id"], sessions, tuple(map(_question, record["questions"])))
    known = person.texts()
    for question in person.questions:
        for alternatives in question.evidence:
            if missing := set(alternatives.split("|")) - known.keys():
                raise ValueError(f"{person.id}: question {question.id}: no turn {min(missing)}")
    return person


def _question(record: Mapping[str, Any]) -> Question:
    return Question(
        id=record["id"],
        kind=record["type"],
        text=record["q"],
        evidence=tuple(record["ev"]),
        spans=record.get("span") or {},
        before=tuple(record.get("before") or ()),
    )
