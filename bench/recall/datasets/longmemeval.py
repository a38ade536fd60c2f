"""LongMemEval (Wu et al. 2025): github.com/xiaowu0162/LongMemEval, longmemeval_s_cleaned.json etc.

Each question has a history of its own, some of it labelled turn by turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.recall.datasets.document import Document, fields
from bench.recall.datasets.labelled import Labelled, asked
from bench.recall.people import LEFT_OUT, Person, Session, Turn

ABSTENTION = "_abs"
"""How the ids of questions end that have no answer."""


def knows(document: Document) -> bool:
    return all(
        fields(one, "question_id", "haystack_sessions", "haystack_dates")
        for one in document.records
    )


def people(document: Document) -> Labelled:
    return Labelled.all(map(_person, document.records))


def _person(one: Mapping[str, Any]) -> Labelled:
    if one["question_id"].endswith(ABSTENTION):
        return Labelled((), LEFT_OUT)
    sessions = tuple(_sessions(one))
    evidence = [
        turn_id(place, n)
        for place, session in enumerate(one["haystack_sessions"])
        for n, turn in enumerate(session)
        if turn.get("has_answer")
    ]
    known = {turn.id: turn.text for session in sessions for turn in session.turns}
    question, repairs = asked(
        one["question_id"],
        one["question_type"],
        one["question"],
        evidence,
        known,
        str(one["answer"]),
    )
    if question is None:
        return Labelled((), repairs)
    return Labelled((Person(one["question_id"], sessions, (question,)),), repairs)


def _sessions(one: Mapping[str, Any]) -> Iterator[Session]:
    """By their dates, which sort as text."""
    dates = one["haystack_dates"]
    for place in sorted(range(len(dates)), key=lambda place: (dates[place], place)):
        turns = tuple(
            Turn(turn_id(place, n), "u" if turn["role"] == "user" else "a", turn["content"])
            for n, turn in enumerate(one["haystack_sessions"][place])
        )
        yield Session(f"s{place}", dates[place], turns)


def turn_id(session: int, turn: int) -> str:
    return f"{session}:{turn}"
