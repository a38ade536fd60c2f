"""Items ranked by the words of a question."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import read_question
from proxy.recall.ranking.rank_items import question_terms_in, rank, texts_of

NOW = 1_700_000_000.0


def found(query: str, *values: object) -> list[int]:
    asked = read_question(query, (), NOW)
    ranked = rank(asked, [question_terms_in(asked, value) for value in values])
    assert all(score > 0 for _, score in ranked)
    assert ranked == sorted(ranked, key=lambda pair: -pair[1])
    return [index for index, _ in ranked]


def test_texts_are_found_wherever_they_are_in_a_value() -> None:
    value = {"a": "one", "b": [1, "two", {"three": "four", "n": None}], "c": {"d": {"e": "five"}}}
    assert list(texts_of(value)) == ["one", "two", "four", "five"]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        pytest.param("boats", 0, id="stems"),
        pytest.param("Wo ist mein Fahrrad?", 1, id="german"),
        pytest.param("上海", 2, id="chinese"),
        pytest.param("東京の天気", 3, id="japanese"),
        pytest.param("서울에서", 4, id="korean"),
        pytest.param("что я люблю: чай", 5, id="russian"),
    ],
)
def test_words_are_found_in_every_language(query: str, best: int) -> None:
    values: list[object] = [
        {"text": "My boat is in the harbour."},
        {"text": "Das Fahrrad steht im Keller."},
        {"text": "我昨天在上海买了一条船"},
        {"text": "東京は雨でした"},
        {"text": "저는 서울에 살아요"},
        {"text": "Он любит чёрный чай"},
    ]
    assert found(query, *values)[0] == best


def test_more_words_rarer_words_and_shorter_texts_are_better() -> None:
    long = "boat " + "and the weather was fine that day so we went outside " * 5
    assert found("boat Marlin", "boat", "marlin boat", long, "soup") == [1, 0, 2]
    assert found("boat Marlin", *["a boat"] * 9, "a marlin")[0] == 9


def test_equals_keep_their_order_and_nothing_is_found_in_nothing() -> None:
    assert found("boat", "boat", "boat", "boat") == [0, 1, 2]
    assert found("boat") == [] == found("boat", {}) == found("", "boat") == found("the", "the")
