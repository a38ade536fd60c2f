"""A result is kept with what was measured, where and when."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.recall import __main__ as program
from bench.recall import results
from bench.recall.drive import Asked
from bench.recall.people import Collection, Person, Question
from bench.recall.results import RESULTS, Made, page, place


def test_a_page_says_how_it_was_made() -> None:
    made = Made("--budget 500", "abc", "2024-05-02", "Linux, 2 cores")
    text = page("LoCoMo", "locomo10", "| a |", ["A note."], made)
    assert text.startswith("# Recall: LoCoMo, locomo10\n\n| a |\n\nA note.\n\n")
    assert "Commit abc, 2024-05-02 (UTC); Linux, 2 cores. `--budget 500`." in text


def test_the_same_data_has_the_same_file() -> None:
    assert place("LoCoMo-Plus", "Mine 2") == RESULTS / "recall-locomo-plus-mine-2.md"
    assert place("own", "x", "redis", "vectors") == RESULTS / "recall-own-x-redis-vectors.md"


def test_the_commit_is_one_or_unknown() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}(, with changes)?|unknown", results.commit())


def test_no_place_of_this_machine_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = Question("q", "single fact", "?", ("1",))
    collection = Collection("tiny", (Person("p", (), (question,)),))
    asked = [Asked("p", question, 500, 12, 1.0, False, 0.01)]
    monkeypatch.setattr(program, "load", lambda path: collection)
    monkeypatch.setattr(program, "measure", lambda *_: asked)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    program.main([str(tmp_path / "tiny.jsonl"), "--write", "--store", f"sqlite:///{tmp_path}/x.db"])
    (kept,) = (tmp_path / "results").iterdir()
    text = kept.read_text(encoding="utf-8")
    assert "| single fact | 1 | 1.000 | 12 | 10.0 |" in text
    assert "--store sqlite --client last" in text
    assert str(tmp_path) not in text
    assert "| single fact | 1 |" in capsys.readouterr().out


def test_kept_results_are_whole() -> None:
    for kept in RESULTS.glob("*.md"):
        text = kept.read_text(encoding="utf-8")
        assert re.search(r"Commit [0-9a-f]{12}, \d{4}-\d\d-\d\d \(UTC\)", text), kept.name
