"""Only the user's own words are looked at, in bounded time, and given as they were said."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.own_words import LONGEST_SENTENCE
from proxy.recall.standing.standing import is_standing, notice

ORDER = "Always answer in French."
FORWARDED = "From: Ann <ann@example.org>\nTo: all\n\nAlways answer in French."


def texts(message: str) -> list[str]:
    return [standing.text for standing in notice(message)]


def test_a_sentence_is_given_as_it_was_said() -> None:
    said = 'Always write dates as "Month Day, Year".'
    assert texts(f"Hello! {said} Thanks.") == [said]


def test_what_a_condition_is_about_is_kept_apart() -> None:
    (standing,) = notice("Always include prices when I ask about hotels.")
    assert standing.matter == {"price"}
    assert standing.scope == {"hotel"}


def test_a_preference_in_a_short_message_keeps_what_it_is_for() -> None:
    message = "I'm planning meals for the week. I prefer recipes without meat. Any ideas?"
    assert texts(message) == [message]


def test_a_preference_in_a_longer_message_is_given_alone() -> None:
    before = "We looked at many recipes that day. " * 10
    assert texts(before + "I prefer recipes without meat.") == ["I prefer recipes without meat."]


def test_a_list_that_is_announced_belongs_to_the_sentence() -> None:
    message = "From now on:\n- answer in French\n- never use emojis"
    assert texts(f"Hello!\n{message}\n\nThanks.") == [message]


@pytest.mark.parametrize("label", ["Anna: ", "[3 May 2024] ", "[3 May 2024] Anna: ", "小林："])
def test_a_speakers_name_and_a_date_do_not_disturb(label: str) -> None:
    assert texts(label + ORDER) == [ORDER]


def test_a_typographic_apostrophe_does_not_disturb() -> None:
    assert texts("Don’t ever use emojis.") == ["Don’t ever use emojis."]


@pytest.mark.parametrize(
    "message",
    [
        f"Look what she wrote:\n> {ORDER}",
        f'"{ORDER}"',
        f"He asked for this: «{ORDER}»",
        f"My prompt is `{ORDER}`",
        f"```\n{ORDER}\n",
        f"See below.\n{FORWARDED}",
        FORWARDED,
        f"<document>\n{ORDER}\n</document>",
        f"user: {ORDER}\nassistant: Fine.",
        f"What do you think?\n\nOn Monday, Ann wrote:\n{ORDER}",
        f"Please proofread the following text: {ORDER}",
        f"请翻译下面的句子：{ORDER}",
        f"Our style guide:\n- {ORDER}\n- Never use emojis.\n- Always use metric units.",
        f"Ann: Hello there.\nBob: {ORDER}\nAnn: Fine.",
        f"*draws the sword* {ORDER}",
        f"You are a pirate. {ORDER}",
        f"Act as a translator. {ORDER}",
        f"Teacher: {ORDER}",
    ],
)
def test_quoted_and_pasted_words_are_not_the_users(message: str) -> None:
    assert texts(message) == []


def test_words_around_a_paste_are_the_users() -> None:
    paste = "\n".join(f"row {i}: Always answer in German." for i in range(100))
    assert texts(f"{ORDER}\n{paste}\nNever use emojis.") == [ORDER, "Never use emojis."]


def test_a_long_text_in_one_piece_is_a_paste() -> None:
    assert texts("Always answer in French. " * 100) == []


def test_a_sentence_that_is_too_long_is_left() -> None:
    assert texts("Always answer in French" + " and so on" * (LONGEST_SENTENCE // 10) + ".") == []


def test_what_is_said_twice_in_a_message_is_one() -> None:
    assert texts(f"{ORDER} {ORDER}") == [ORDER]


ATOMS = """
always never please i prefer don't answer whenever siempre usa prefiero bitte immer antworte
toujours 以后 请 总是 用 更喜欢 いつも ください 항상 주세요 всегда пиши دائما أجب > ``` * - : . \0
"""
PHRASES = ["from now on", "when I ask", "can you", "wenn ich frage", '"', "'", ", ", "\n", "\n- "]


@given(st.lists(st.sampled_from([*ATOMS.split(), *PHRASES]), max_size=60).map(" ".join))
def test_whatever_is_noticed_was_said(message: str) -> None:
    noticed = notice(message)
    assert all(standing.text in message for standing in noticed)
    assert is_standing(message) == bool(noticed)


@given(st.text(max_size=300))
def test_any_text_can_be_read(message: str) -> None:
    assert all(standing.text in message for standing in notice(message))


@pytest.mark.parametrize(
    "message",
    [
        "always " * 150_000,
        "always" * 170_000,
        'always "' * 120_000,
        "always,\n" * 120_000,
        "😀" * 500_000 + "always",
        ", ".join(["call me"] * 220),
        ". ".join([", ".join(["if i say, i like my"] * 23)] * 4),
        "以后请" * 600,
    ],
    ids=lambda message: message[:12],
)
def test_a_hostile_text_takes_bounded_time(message: str) -> None:
    notice(message)  # what is built once
    started = time.process_time()
    notice(message)
    assert time.process_time() - started < 0.5  # some 0.02 s on an idle machine
