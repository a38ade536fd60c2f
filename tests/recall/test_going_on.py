"""Without a model a question that points back is read with the words before it, in any script."""

from __future__ import annotations

import pytest

from proxy.recall.query.counting import count_words
from proxy.recall.query.question import read_question

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "before", "word"),
    [
        ("And the other one?", "I compare the Aurora with the Borealis.", "Borealis"),
        ("Und das andere?", "Ich vergleiche die Pension mit dem Gasthof.", "Gasthof"),
        ("¿Y el otro?", "Comparo el hotel Aurora con el Mirador.", "Mirador"),
        ("Et l'autre ?", "Je compare l'Aurore et le Belvédère.", "Belvédère"),
        ("وماذا عن الآخر؟", "أقارن بين فندق الواحة وفندق النخيل", "النخيل"),
        ("那另一家呢？", "我在比较青松旅馆和白云酒店。", "白云"),
        ("それはいくら？", "白雲ホテルに泊まりたい。", "白雲"),
        ("그건 얼마예요?", "백운 호텔에 가고 싶어요.", "백운"),
    ],
    ids=["English", "German", "Spanish", "French", "Arabic", "Chinese", "Japanese", "Korean"],
)
def test_a_question_that_points_back_is_about_what_was_said(
    text: str, before: str, word: str
) -> None:
    terms = {term for sought in read_question(word, (), NOW).words for term in sought.terms}
    found = {term for sought in read_question(text, (before,), NOW).words for term in sought.terms}
    assert terms & found
    assert not terms & {t for sought in read_question(text, (), NOW).words for t in sought.terms}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("那另一家呢？", 2),
        ("白云酒店的房间多少钱？", 5),
        ("The blue canoe of Rosalind", 3),
    ],
)
def test_characters_are_counted_as_parts_of_words(text: str, words: int) -> None:
    assert count_words(sought.text for sought in read_question(text, (), NOW).words) == words
