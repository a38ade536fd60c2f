"""The conversation: the same recorded turns in each row, in one API or the other.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from bench.cost.text import Talk
from bench.recall.people import Pair, Person

Json = dict[str, Any]
Api = Literal["chat", "messages"]

PATHS: dict[Api, str] = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}

SYSTEM, ANSWER = 300, 120
"""Words of the system prompt, and those that an answer has beside the recorded one: these are made
ones, of two tokens each, that no question has."""

ASKS = 4
"""Every so many turns the person asks about what was said."""

SEED = 1


@dataclass(frozen=True, slots=True)
class Words:
    """``said`` and ``answers`` turn by turn."""

    system: str
    said: Sequence[str]
    answers: Sequence[str]

    def part(self, first: int, last: int | None) -> Words:
        return Words(self.system, self.said[first:last], self.answers[first:last])


def words_of(people: Sequence[Person], turns: int) -> Words:
    """So many turns, as these people have said them and asked, one after the other.

    Raises ValueError where they have not said as much.
    """
    filler, questions = _made(), [x.text for person in people for x in person.questions]
    told = (pair for person in people for session in person.sessions for pair in session.pairs())
    said: list[str] = []
    answers: list[str] = []
    system = _filled(filler, SYSTEM)
    for turn in range(turns):
        asks = turn % ASKS == ASKS - 1
        pair = Pair(questions[turn // ASKS], "") if asks else next(told, None)
        if pair is None:
            raise ValueError("there are too few recorded turns")
        said.append(pair.question)
        answers.append(f"{pair.answer} {_filled(filler, ANSWER)}".strip())
    return Words(system, said, answers)


def _made() -> Iterator[str]:
    return iter(" ".join(Talk(SEED).session(3_000)).split())


def _filled(words: Iterator[str], count: int) -> str:
    return " ".join(islice(words, count))


@dataclass(frozen=True, slots=True)
class Client:
    """What an application sends.  ``whole``: its whole conversation each time; ``marks``: with a
    mark on its newest message, as Anthropic's guide has it."""

    api: Api
    model: str
    whole: bool
    marks: bool = False

    def body(self, words: Words, turn: int) -> Json:
        """Its request in a turn, from 0."""
        system = {"role": "system", "content": words.system}
        said = self._said(words, turn)
        if self.api == "messages":
            limit = {"max_tokens": 1024, "system": words.system}
            return {"model": self.model, "messages": said, **limit}
        return {"model": self.model, "messages": [system, *said]}

    def _said(self, words: Words, turn: int) -> list[Json]:
        before: list[Json] = []
        for at in range(turn if self.whole else 0):
            before.append({"role": "user", "content": words.said[at]})
            before.append({"role": "assistant", "content": words.answers[at]})
        newest: Json = {"role": "user", "content": words.said[turn]}
        if self.marks:
            part = {"type": "text", "text": words.said[turn]}
            newest["content"] = [{**part, "cache_control": {"type": "ephemeral"}}]
        return [*before, newest]
