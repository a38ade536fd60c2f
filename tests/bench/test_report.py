"""The table and the line of JSON say what was found."""

from __future__ import annotations

import json
from pathlib import Path

from bench.recall.drive import Asked
from bench.recall.people import Collection, Person, Question, Repairs
from bench.recall.report import details, notes, summary, table

KINDS = ("single fact", "single fact", "standing", "small talk")
QUESTIONS = tuple(
    Question(f"q{at}", kind, "?", () if kind == "small talk" else ("1",))
    for at, kind in enumerate(KINDS)
)
COLLECTION = Collection("tiny", (Person("p", (), QUESTIONS),), Repairs(3, 2, 1, 7))
RECALLS = (1.0, 0.5, 0.0, None)


def asked(late: bool = False) -> list[Asked]:
    return [
        Asked("p", question, budget, budget * 2 * (at == 1), recall, True, 0.01, late)
        for budget in (500, 1000)
        for at, (question, recall) in enumerate(zip(QUESTIONS, RECALLS, strict=True))
    ]


def test_the_mean_leaves_out_what_does_not_point_at_its_evidence() -> None:
    figures = summary(COLLECTION, "sqlite", asked())
    assert figures["recall@500"] == 0.5  # one whole, one over budget
    assert figures["standing@500"] == 0.0
    assert figures["small talk@1000"] == 1.0
    assert figures["over_budget"] == 2
    assert figures["questions"] == 4
    json.dumps(figures)


def test_the_table_has_a_row_for_each_kind_and_figures_for_each_budget() -> None:
    head, _, *rows = table(asked()).splitlines()
    assert head == "|  | questions | @500 | tokens | ms | @1,000 | tokens | ms |"
    assert rows == [
        "| single fact | 2 | 0.500 | 500 | 10.0 | 0.500 | 1,000 | 10.0 |",
        "| **all of these** | 2 | 0.500 | 500 | 10.0 | 0.500 | 1,000 | 10.0 |",
        "| small talk: nothing recalled (apart) | 1 | 1.000 | 0 | 10.0 | 1.000 | 0 | 10.0 |",
        "| standing (apart) | 1 | 0.000 | 0 | 10.0 | 0.000 | 0 | 10.0 |",
    ]


def test_what_must_be_known_is_said() -> None:
    said = "\n".join(notes(summary(COLLECTION, "sqlite", asked(late=True))))
    assert "2 prompts were over budget" in said
    assert "8 questions went without recall" in said
    assert "3 repaired, 2 dropped; 1 questions" in said
    assert "7 questions are left out" in said


def test_details_are_a_line_a_question_and_budget() -> None:
    lines = [json.loads(line) for line in details(asked())]
    assert len(lines) == 8
    assert {line["score"] for line in lines} == {0.0, 1.0}


def test_the_readme_names_every_option() -> None:
    text = (Path(__file__).parents[2] / "bench" / "README.md").read_text(encoding="utf-8")
    options = "budget store client model people questions details json write"
    for option in options.split():
        assert f"`--{option}" in text
