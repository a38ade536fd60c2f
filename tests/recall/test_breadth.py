"""Questions for all there are of something reach many sessions."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import read_question
from proxy.recall.ranking.breadth import BEST_FIRST, MIN_SCORE_SHARE, diversify_sessions
from proxy.recall.ranking.score import Ranked
from tests.support.store.remembering import NOW


def ranked(*found: tuple[int, float]) -> list[Ranked]:
    return [
        Ranked(number, session, number, 0, BEST_FIRST // 2, score, (0.0,) * 7)
        for number, (session, score) in enumerate(found)
    ]


def order(*found: tuple[int, float]) -> list[int]:
    return [each.number for each in diversify_sessions(ranked(*found))]


def test_each_session_has_one_before_any_has_a_further_one() -> None:
    assert order((1, 1.0), (1, 0.9), (1, 0.8), (2, 0.7), (2, 0.6), (3, 0.5)) == [0, 1, 3, 5, 2, 4]


def test_what_is_far_from_the_best_is_not_preferred() -> None:
    assert order((1, 1.0), (1, 0.9), (1, 0.8), (2, MIN_SCORE_SHARE / 2)) == [0, 1, 2, 3]


def test_the_best_come_first_whatever_their_sessions() -> None:
    assert order((1, 1.0), (1, 0.9), (2, 0.8)) == [0, 1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "Which places have I been to?", "How many times did we go climbing?",
        "What kinds of soups have we cooked?", "How often was I late?", "Wie oft war ich dort?",
        "Welche Suppen haben wir gekocht?", "Combien de fois suis-je venu ?", "Quels livres ?",
        "¿Cuántas veces fui?", "Quante volte siamo andati?", "Quantas vezes fui?",
        "Hoe vaak was ik daar?", "我去过哪些地方？", "何回行きましたか？", "Сколько раз я там был?",
        "Tell me everything about Theo.", "Erzähl mir alles über Bruno.",
    ],
)  # fmt: skip
def test_a_question_for_all_there_are_is_known(text: str) -> None:
    assert read_question(text, (), NOW).asks_list


@pytest.mark.parametrize(
    "text",
    [
        "Where is order 1044?", "How many days lie between the two?", "When did I move?",
        "What has Anna bought?", "Wie viele Tage war ich dort?", "Combien de jours ?",
    ],
)  # fmt: skip
def test_other_questions_are_not(text: str) -> None:
    assert not read_question(text, (), NOW).asks_list
