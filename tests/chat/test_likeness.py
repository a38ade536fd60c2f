from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.canonical import are_similar, is_prefix

ANSWER = "The quick brown fox jumps over the lazy dog and runs away."


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("**Bold** and `code`", "Bold and code"),
        ("a\n\n- b\n- c", "a b c"),
        ("It's fine", "It\u2019s fine"),
        (ANSWER, ANSWER.replace("quick ", "")),
        (ANSWER, ANSWER.upper()),
        ("今日はとても良い天気ですね", "今日はとても良い天気です"),
        ("안녕하세요 반갑습니다", "안녕하세요, 반갑습니다!"),
        ("...", "..."),
        ("! ?", "!  ?"),
    ],
)
def test_texts_rendered_anew_are_similar(a: str, b: str) -> None:
    assert are_similar(a, b)
    assert are_similar(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (ANSWER, "Something else entirely, with other words in it."),
        ("yes", "no"),
        ("yes", ""),
        ("...", "!!!"),
        ("今日は天気がいい", "明日の会議は何時ですか"),
        ("a b c d", "a b c x y z"),
        ("word " * 5, "word " * 10),
    ],
)
def test_other_texts_are_not_similar(a: str, b: str) -> None:
    assert not are_similar(a, b)
    assert not are_similar(b, a)


def test_four_of_five_words_are_enough_and_three_are_not() -> None:
    assert are_similar("one two three four five", "one two three four six")
    assert not are_similar("one two three four five", "one two three six seven")


@given(st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_symmetric_and_everything_resembles_itself(a: str, b: str) -> None:
    assert are_similar(a, a)
    assert are_similar(a, b) == are_similar(b, a)


def test_hostile_texts_are_compared_in_linear_time() -> None:
    a, b = "ab " * 700_000, "ba " * 700_000
    began = time.process_time()
    assert not are_similar(a, b)
    assert time.process_time() - began < 1.0


def test_texts_beyond_the_cap_that_differ_much_in_length_are_not_similar() -> None:
    assert not are_similar("word " * 21_000, "word " * 60_000)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("The answer", "The answer is 4", True),
        ("  The answer \n", "The answer is 4", True),
        ("The answer is 4", "The answer", True),
        ("answer", "The answer", False),
        ("", "The answer", False),
        ("same", "same", True),
    ],
)
def test_one_text_is_the_beginning_of_the_other(a: str, b: str, expected: bool) -> None:
    assert is_prefix(a, b) is expected
