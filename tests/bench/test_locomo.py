"""LoCoMo's own JSON is read, its malformed labels included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.recall.datasets.dialogue import read_labels
from bench.recall.datasets.table import load
from bench.recall.people import Repairs

KNOWN = {"D1:1", "D1:2", "D8:6", "D9:17", "D11:26", "D30:5"}


@pytest.mark.parametrize(
    ("labels", "turns", "repairs"),
    [
        pytest.param(["D1:1", "D1:2"], ["D1:1", "D1:2"], Repairs(), id="as-they-should-be"),
        pytest.param(["D8:6; D9:17"], ["D8:6", "D9:17"], Repairs(repaired=1), id="two-in-one"),
        pytest.param(["D8:6 D9:17"], ["D8:6", "D9:17"], Repairs(repaired=1), id="spaced"),
        pytest.param(["D:11:26"], ["D11:26"], Repairs(repaired=1), id="a-colon-too-many"),
        pytest.param(["D30:05"], ["D30:5"], Repairs(repaired=1), id="a-leading-zero"),
        pytest.param(["D"], [], Repairs(dropped=1), id="nothing-to-read"),
        pytest.param(["D1:1", "D4:99"], ["D1:1"], Repairs(dropped=1), id="no-such-turn"),
        pytest.param(["D1:1", "D1:1"], ["D1:1"], Repairs(), id="twice"),
        pytest.param(["D1:1-D1:9"], ["D1:1", "D1:2"], Repairs(repaired=1), id="a-span"),
        pytest.param(["D1:2-D8:6"], ["D1:2", "D8:6"], Repairs(repaired=1), id="two-with-a-dash"),
        pytest.param(["D8:6; D4:99"], ["D8:6"], Repairs(1, 1), id="half-of-one"),
    ],
)
def test_labels_are_repaired_or_dropped_and_counted(
    labels: list[str], turns: list[str], repairs: Repairs
) -> None:
    assert read_labels(labels, KNOWN) == (turns, repairs)


def sample() -> dict[str, Any]:
    said = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a photo of a hat"},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice."},
    ]
    asked = [
        {"question": "What?", "answer": "a hat", "evidence": ["D1:1"], "category": 4},
        {"question": "Trick?", "adversarial_answer": "-", "evidence": ["D1:2"], "category": 5},
        {"question": "Where?", "answer": "-", "evidence": ["D"], "category": 1},
    ]
    conversation: dict[str, Any] = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_2": [],
        "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Later."}],
        "session_10_date_time": "9 May",
        "session_1": said,
        "session_1_date_time": "1 May",
    }
    return {"sample_id": "conv-1", "conversation": conversation, "qa": asked}


def test_a_sample_is_a_person(tmp_path: Path) -> None:
    path = tmp_path / "locomo10.json"
    path.write_text(json.dumps([sample()]), encoding="utf-8")
    found = load(path)
    (person,) = found.people
    assert [(s.id, s.date) for s in person.sessions] == [
        ("session_1", "1 May"),
        ("session_10", "9 May"),
    ]
    assert person.sessions[0].turns[0] == ("D1:1", "u", "Ada: Look! [photo: a photo of a hat]")
    assert [turn.by for session in person.sessions for turn in session.turns] == ["u", "a", "a"]
    assert [(q.text, q.kind) for q in person.questions] == [("What?", "single fact")]
    assert found.repairs == Repairs(dropped=1, questions=1, left_out=1)
