"""Patterns and plain text as people type them, without apostrophes and accents."""

from __future__ import annotations

import re

import pytest

from proxy.recall.lexicon.spelling import spellings, without_required_accents
from proxy.recall.standing.standing import find_instructions


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("i'm", "im"),
        ("i'm", "i'm"),
        ("alérgic[oa]", "alergica"),
        ("nüsse", "nusse"),
        ("nüsse", "nuesse"),
        ("nüsse", "nüsse"),
        ("أنا", "انا"),
        ("ещё", "еще"),
    ],
)
def test_a_pattern_is_found_without_its_marks(pattern: str, text: str) -> None:
    assert re.fullmatch(without_required_accents(pattern), text)


@pytest.mark.parametrize(("pattern", "text"), [("d[á]", "da"), ("が", "か"), ("й", "и")])
def test_what_makes_another_letter_must_be_written(pattern: str, text: str) -> None:
    assert not re.fullmatch(without_required_accents(pattern), text)


def test_plain_text_is_spelled_with_all_of_its_marks_or_none() -> None:
    assert spellings("j'ai dû") == {"j'ai dû", "jai du"}
    assert spellings("grüß") == {"grüß", "gruß", "grueß"}


@pytest.mark.parametrize(
    ("written", "typed"),
    [
        ("I'm allergic to peanuts", "im allergic to peanuts"),
        ("Don't ever use tables", "dont ever use tables"),
        ("Soy alérgico a las nueces", "soy alergico a las nueces"),
        ("Je suis végétarien", "je suis vegetarien"),
        ("Antworte künftig kürzer", "antworte kuenftig kuerzer"),
        ("أنا نباتي", "انا نباتي"),
    ],
)
def test_a_wish_is_the_same_however_it_is_typed(written: str, typed: str) -> None:
    assert (
        [each.kind for each in find_instructions(typed)]
        == [each.kind for each in find_instructions(written)]
        != []
    )
