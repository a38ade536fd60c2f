"""A turn counts as being in the prompt when nearly all that it says is."""

from __future__ import annotations

import pytest

from bench.recall.people import Question
from bench.recall.presence import Injected, tokens

SAID = "We will drive to the lake on Sunday with both of the dogs"


@pytest.mark.parametrize(
    ("injected", "there"),
    [
        pytest.param(f"user: {SAID}.\nassistant: fine", True, id="whole"),
        pytest.param(SAID.upper().replace(" ", "\n  "), True, id="reshaped"),
        pytest.param(SAID.removesuffix(" dogs"), True, id="a-word-missing-at-the-end"),
        pytest.param(SAID.replace("lake", "sea"), False, id="another-word-in-the-middle"),
        pytest.param("dogs the of both with Sunday on lake the to drive", False, id="shuffled"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_four_fifths_of_its_shingles_make_a_turn_present(injected: str, there: bool) -> None:
    assert (Injected(injected).covers(SAID) >= 0.8) is there


def test_chinese_counts_by_the_character_and_short_turns_as_a_whole() -> None:
    assert tokens("我的猫 Momo!") == ["我", "的", "猫", "momo"]
    assert Injected("用户：我的猫叫年糕，它很胖。").covers("我的猫叫年糕") == 1.0
    assert Injected("a big dog").covers("big dog") == 1.0
    assert Injected("a dog, big").covers("big dog") == 0.0


def test_the_name_before_what_was_said_does_not_count() -> None:
    assert Injected("it is raining in the town again").covers("Ada: It is raining again") == 0.0
    assert Injected("It is raining again").covers("Ada: It is raining again") == 1.0


def test_recall_is_the_share_of_the_evidence_any_alternative_of_which_is_there() -> None:
    texts = {"1": "one two three", "2": "four five six", "3": "seven eight nine"}
    injected = Injected("four five six")
    assert injected.recall(Question("q", "k", "?", ("1|2", "3")), texts) == 0.5
    spans = {"3": "five six"}
    assert injected.recall(Question("q", "k", "?", ("2", "3"), spans), texts) == 1.0
