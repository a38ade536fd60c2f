"""Turns in batches: whole where they fit, in parts where one alone does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.models.tokens import Tokenizers
from proxy.summary.lines import TranscriptLine, with_day_lines
from proxy.summary.uncovered_turns import UNANSWERED, SummaryBatch, first_batch
from tests.support.talk.summarising import words

COUNT = Tokenizers().counter_for(None).count_text


def turn(*texts: str) -> list[TranscriptLine]:
    return [TranscriptLine("AI" if n % 2 else "Human", ": ", text) for n, text in enumerate(texts)]


# Each of these turns has two words and room for a line feed: 3.
SHORT = turn("one")


@pytest.mark.parametrize(
    ("turns", "most", "expected"),
    [
        ([SHORT], 10, SummaryBatch(1, ("Human: one",))),
        ([SHORT] * 4, 10, SummaryBatch(3, ("Human: one\nHuman: one\nHuman: one",))),
        ([SHORT] * 4, 12, SummaryBatch(4, ("\n".join(["Human: one"] * 4),))),
        ([turn("a", "b"), SHORT], 6, SummaryBatch(1, ("Human: a\nAI: b",))),
        ([[], SHORT, []], 10, SummaryBatch(3, ("Human: one",))),
        ([[], []], 10, SummaryBatch(2, ())),
        ([], 10, SummaryBatch(0, ())),
    ],
)
def test_as_many_whole_turns_as_fit(
    turns: list[list[TranscriptLine]], most: int, expected: SummaryBatch
) -> None:
    assert first_batch(turns, most, words) == expected


def test_a_turn_that_is_too_large_is_a_batch_of_parts() -> None:
    large = turn("a b c d", "e f g h", "i")
    batch = first_batch([[], large, SHORT], 7, words)
    assert batch == SummaryBatch(2, ("Human: a b c d", "AI: e f g h", "Human: i"))


def test_a_message_that_is_too_large_is_split_and_the_next_follows_in_place() -> None:
    batch = first_batch([turn("a b c d e f g h i", "j")], 9, words)
    assert batch.parts == ("Human: a b c d e f ", "Human (continued): g h i\nAI: j")


MAY = 1_683_554_160.0
"""Monday, 2023-05-08 13:56 UTC"""


def test_the_day_stands_above_the_turns_of_each_day() -> None:
    turns = [(MAY, SHORT), (MAY + 60, SHORT), (MAY + 86_400, []), (MAY + 86_400, SHORT)]
    (text,) = first_batch(list(with_day_lines(turns)), 100, words).parts
    assert text.splitlines() == [
        "[Monday 2023-05-08]",
        "Human: one",
        "Human: one",
        "[Tuesday 2023-05-09]",
        "Human: one",
    ]


def test_the_day_is_repeated_at_each_cut_of_a_turn() -> None:
    turns = list(with_day_lines([(MAY, turn("a b c d", "e f g h", "i"))]))
    batch = first_batch(turns, 9, words)
    assert len(batch.parts) > 1
    assert all(part.startswith("[Monday 2023-05-08]\nHuman: ") for part in batch.parts[:1])
    assert all(part.startswith("[Monday 2023-05-08]\n") for part in batch.parts)


@pytest.mark.parametrize("end", ["And you?", "你呢？", "وأنت؟"])
def test_a_question_without_its_answer_is_marked_as_open(end: str) -> None:
    assert first_batch([turn("Hi", end)], 100, words).parts[0].endswith(f"{end}\n{UNANSWERED}")
    assert UNANSWERED not in first_batch([turn(end, "Fine.")], 100, words).parts[0]


TURNS = st.lists(
    st.lists(st.text("ab \n漢", max_size=120), max_size=4).map(lambda texts: turn(*texts)),
    max_size=5,
)


@given(turns=TURNS, most=st.integers(12, 80))
def test_batch_by_batch_everything_is_read_in_order(
    turns: list[list[TranscriptLine]], most: int
) -> None:
    read = ""
    left = turns
    while left:
        batch = first_batch(left, most, COUNT)
        assert batch.turns >= 1
        assert all(COUNT(part) <= most for part in batch.parts)
        read += "".join(batch.parts)
        left = left[batch.turns :]

    def said(text: str) -> str:
        return "".join(sign for sign in text if sign in "ab漢")

    spoken = "".join(str(line.text) for turn in turns for line in turn)
    for name in ("Human", "AI", " (continued): ", ": "):
        read = read.replace(name, "")
    assert said(read) == said(spoken)
