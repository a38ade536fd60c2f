"""The small set of conversations is what it is said to be."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.recall.__main__ import OWN
from bench.recall.datasets.table import load
from bench.recall.people import Collection

KINDS = {
    "single fact",
    "several sessions",
    "time",
    "follow-up",
    "assistant said",
    "standing",
    "paraphrase",
    "small talk",
}


@pytest.fixture(scope="module")
def own() -> Collection:
    return load(OWN)


def test_it_is_small_and_has_every_kind_of_question(own: Collection) -> None:
    kinds = Counter(question.kind for person in own.people for question in person.questions)
    assert OWN.stat().st_size < 250_000
    assert kinds.keys() == KINDS
    assert min(kinds.values()) >= 8
    assert own.questions >= 120


def test_people_have_sessions_of_a_natural_size(own: Collection) -> None:
    assert len(own.people) == 6
    for person in own.people:
        assert 6 <= len(person.sessions) <= 10
        assert all(6 <= len(session.turns) <= 14 for session in person.sessions)


def test_ids_are_unique_and_only_small_talk_has_no_evidence(own: Collection) -> None:
    for person in own.people:
        turns = [turn.id for session in person.sessions for turn in session.turns]
        assert len(set(turns)) == len(turns)
        questions = [question.id for question in person.questions]
        assert len(set(questions)) == len(questions)
        for question in person.questions:
            assert bool(question.evidence) is (question.kind != "small talk")
            assert bool(question.before) is (question.kind == "follow-up")


def test_no_evidence_is_said_twice(own: Collection) -> None:
    for person in own.people:
        texts = person.texts()
        said = Counter(texts.values())
        for question in person.questions:
            assert all(said[texts[turn]] == 1 for turn in question.evidence)


def test_spans_are_parts_of_their_turns(own: Collection) -> None:
    spans = [
        (text, person.texts()[turn])
        for person in own.people
        for question in person.questions
        for turn, text in question.spans.items()
    ]
    assert spans
    assert all(span in text for span, text in spans)
