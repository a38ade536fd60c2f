"""Whether a quote is in what was said, and in whose words."""

from __future__ import annotations

import pytest

from proxy.learning.evidence import UserMessage, find_evidence
from proxy.recall.own_words import pasted_spans

TEXT = """Hi! I live in   Berlin — since 2019, with my dog “Rex”.
> I am a king in Rome
Don't tell Ann."""


def said(text: str, message: str = "m") -> UserMessage:
    return UserMessage(message, "e", 1, text, 0.0, pasted_spans(text))


@pytest.mark.parametrize(
    "quote",
    [
        "I live in Berlin",
        "i LIVE in berlin",
        '"I live in Berlin."',
        "Berlin, since 2019",
        "with my dog Rex",
        "Ｉ ｌｉｖｅ in Berlin",
        "don’t tell Ann",
        "I live in Berlin ... with my dog Rex",
        "I live in Berlin … my dog",
    ],
)
def test_what_was_said_is_found(quote: str) -> None:
    found = find_evidence(quote, [said(TEXT)])
    assert found is not None and found.voice == "own"


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "Berlin",
        "...",
        "I live in Bern",
        "I live in Ber",
        "live Berlin",
        "I love in Berlin",
        "with my dog Rex Don't tell Ann",
        "I live in Berlin ... with my cat Rex",
        "I live in Berlin ... Ann",
    ],
)
def test_what_was_not_said_or_is_too_short_is_not_found(quote: str) -> None:
    assert find_evidence(quote, [said(TEXT)]) is None


@pytest.mark.parametrize(
    ("text", "quote", "there"),
    [
        ("我住在柏林，喜欢猫。", "我住在柏林", True),
        ("我住在柏林，喜欢猫。", "我住在柏林 喜欢猫", True),
        ("我住在柏林，喜欢猫。", "柏林", False),
        ("我叫Kai。", "我叫Kai", True),
        ("東京に住んでいます。", "東京に住んで", True),
        ("저는 서울에 살아요.", "서울에 살아요", True),
        ("أعيش في القاهرة", "أعيش في القاهرة", True),
        ("Я живу в Москве", "я живу в москве", True),
    ],
)
def test_every_script_is_read(text: str, quote: str, there: bool) -> None:
    assert (find_evidence(quote, [said(text)]) is not None) is there


def test_what_is_only_quoted_is_told_from_what_is_said() -> None:
    found = find_evidence("I am a king in Rome", [said(TEXT)])
    assert found is not None and found.voice == "pasted"


def test_own_words_count_before_the_same_words_pasted() -> None:
    found = find_evidence("I am a king", [said("> I am a king", "a"), said("I am a king", "b")])
    assert found is not None and (found.message.id, found.voice) == ("b", "own")


def test_the_message_that_is_named_is_looked_at_first() -> None:
    batch = [said("I have a dog", "a"), said("I have a dog", "b")]
    for first, message in ((0, "a"), (1, "b"), (7, "a"), (-1, "a")):
        found = find_evidence("I have a dog", batch, first)
        assert found is not None and found.message.id == message
