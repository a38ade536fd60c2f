"""What is the same to a reader is the same, and is found to be in time that grows with the text."""

from __future__ import annotations

from typing import Literal
from unicodedata import combining, normalize

import pytest

from proxy.recall.lexicon.folding import fold, fold_beginning, max_normalized_length, normalized
from proxy.recall.query.words import MAX_CHARACTERS, TokenizedText

BELOW, ABOVE, VOICED = "\u0327", "\u0301", "\uff9e"
"""Accents that stand in an order of their own, whatever order they are written in."""

CROWDS = [
    pytest.param((BELOW + ABOVE) * 500, id="in-turn"),
    pytest.param(ABOVE * 500 + BELOW * 500, id="reversed"),
    pytest.param((ABOVE + VOICED) * 500, id="of-half-width"),
]


def longest(text: str) -> int:
    marks = "".join("m" if combining(letter) else " " for letter in text)
    return max((len(run) for run in marks.split()), default=0)


@pytest.mark.parametrize("marks", CROWDS)
def test_of_a_crowd_of_accents_few_are_sorted_at_a_time(marks: str) -> None:
    assert longest(normalized(f"a{marks}b")) <= 60
    assert longest(normalized(f"a{marks}b", "NFKD")) <= 60


@pytest.mark.parametrize(
    "text",
    [
        "e\u0301te\u0301",
        "ｶﾞﾊﾟ",
        "ﬁne…",
        "１２Ａ",
        "한글",
        "\u1112\u1161\u11ab",
        "a\u0301\u0327",
        "¨" * 99,
    ],
)
def test_other_texts_have_the_form_that_unicode_gives_them(text: str) -> None:
    assert normalized(text).replace("\u034f", "") == normalize("NFKC", text)
    assert normalized(text, "NFKD").replace("\u034f", "") == normalize("NFKD", text)


WORDS = "Tiếng Việt, שָׁלוֹם, हिन्दी, ไทยคำ, 한글, 👩🏽‍🚀, ﬁne… ｶﾞﾊﾟ café "
"""Scripts with accents, points, vowel signs, syllables and letters that stand for several."""


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_a_long_text_is_folded_in_pieces_as_in_one(
    form: Literal["NFC", "NFD", "NFKC", "NFKD"],
) -> None:
    text = normalize(form, WORDS * 100)
    assert fold_beginning(text, MAX_CHARACTERS) == fold(text) == fold(WORDS) * 100


def test_no_more_is_read_of_a_text_that_becomes_longer() -> None:
    ligatures = "\ufdfa" * 2048
    assert len(normalize("NFKC", ligatures)) == 18 * len(ligatures)
    assert (
        len(TokenizedText(ligatures).folded)
        == max_normalized_length(ligatures)
        == 2 * len(ligatures)
    )
    assert len(TokenizedText(ligatures * 99).folded) == MAX_CHARACTERS
    assert len(TokenizedText("\ufdfa").folded) == 18
