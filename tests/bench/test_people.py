"""Recorded conversations are read as they are meant, and wrong files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.recall.datasets.table import load
from bench.recall.people import CLOSING, OPENING, Pair, Session, Turn, spread

PERSON = {
    "id": "p",
    "sessions": [{"sid": "s1", "date": "2 May", "turns": [["1", "u", "one"], ["2", "a", "two"]]}],
    "questions": [
        {"id": "q1", "type": "single fact", "q": "which?", "ev": ["1|2"], "span": {"1": "o"}},
        {"id": "q2", "type": "small talk", "q": "thanks", "ev": []},
    ],
}


def session(*turns: str, date: str = "") -> Session:
    return Session("s", date, tuple(Turn(str(at), t[0], t[1:]) for at, t in enumerate(turns)))  # type: ignore[arg-type]


def written(folder: Path, *records: object) -> Path:
    path = folder / "people.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("turns", "pairs"),
    [
        pytest.param(["ua", "ab"], [("a", "b")], id="one"),
        pytest.param(["ua", "ub", "ac", "ad"], [("a\nb", "c\nd")], id="neighbours-are-joined"),
        pytest.param(["aa", "ub", "ac"], [(OPENING, "a"), ("b", "c")], id="assistant-first"),
        pytest.param(["ua", "ab", "uc"], [("a", "b"), ("c", CLOSING)], id="user-last"),
        pytest.param([], [], id="empty"),
    ],
)
def test_a_session_is_pairs_of_messages(turns: list[str], pairs: list[tuple[str, str]]) -> None:
    assert session(*turns).pairs() == [Pair(*pair) for pair in pairs]


def test_the_date_goes_before_the_first_message_only() -> None:
    pairs = session("ua", "ab", "uc", "ad", date="2 May").pairs()
    assert [pair.question for pair in pairs] == ["[2 May] a", "c"]


def test_our_form_is_read(tmp_path: Path) -> None:
    found = load(written(tmp_path, PERSON))
    (person,) = found.people
    assert person.texts() == {"1": "one", "2": "two"}
    assert [question.evidence for question in person.questions] == [("1|2",), ()]
    assert person.questions[0].spans == {"1": "o"}
    assert (found.name, found.exchanges, found.questions) == ("people", 1, 2)


def test_evidence_that_is_no_turn_is_refused(tmp_path: Path) -> None:
    wrong = {**PERSON, "questions": [{"id": "q1", "type": "x", "q": "?", "ev": ["9"]}]}
    with pytest.raises(ValueError, match="question q1: no turn 9"):
        load(written(tmp_path, wrong))


@pytest.mark.parametrize("record", [{"id": "p"}, "text", {"id": "p", "sessions": [{}]}])
def test_other_files_are_refused(tmp_path: Path, record: object) -> None:
    with pytest.raises(ValueError, match="not a file of conversations"):
        load(written(tmp_path, record))


def test_a_part_is_evenly_spread() -> None:
    assert spread(range(10), 3) == (0, 3, 6)
    assert spread(range(3), 0) == spread(range(3), 5) == (0, 1, 2)


def test_a_part_of_a_collection_keeps_people_and_cuts_questions(tmp_path: Path) -> None:
    found = load(written(tmp_path, PERSON, {**PERSON, "id": "r"})).part(1, 1)
    assert [person.id for person in found.people] == ["p"]
    assert found.questions == 1
