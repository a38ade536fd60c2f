"""Words that endings do not bring together: forms of one word, and what is near it in meaning."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import RELATED_WEIGHT, QueryWord, read_question
from proxy.recall.query.related import MAX_WORDS, irregular_forms, related_words
from proxy.recall.query.stemming import stem
from proxy.recall.ranking.packing import term_of
from tests.support.store.remembering import FILLER, NOW, Said, person


def sought(text: str, word: str) -> list[QueryWord]:
    term = term_of(stem(word, "english"))
    return [each for each in read_question(text, (), NOW).words if term in each.terms]


@pytest.mark.parametrize(("asked", "said"), [("buy", "bought"), ("gone", "went"), ("ate", "eat")])
def test_forms_of_a_word_count_as_the_word(asked: str, said: str) -> None:
    (word,) = sought(f"Which lamp {asked} Otto?", said)
    assert word.weight == 1.0
    assert said in irregular_forms(asked, "english")


def test_a_kind_of_thing_finds_what_is_of_it_for_less() -> None:
    (word,) = sought("Which instruments does Otto own?", "violin")
    assert word.weight == RELATED_WEIGHT
    assert not sought("Does Otto own a violin?", "guitar")


def test_a_question_that_says_much_needs_them_less() -> None:
    much = "Which instruments did Otto lend the village orchestra before its concert in Lisbon?"
    (word,) = sought(much, "violin")
    assert word.weight < RELATED_WEIGHT / 2


def test_the_word_itself_is_better_than_one_near_it() -> None:
    who = person(
        Said("The guitar is in the cellar."),
        Said("It rained.", session=2),
        Said("My instruments are in the attic.", session=3),
    )
    best = who.ranked("Where are my instruments?", ())[0]
    assert who.said[best.number].session == 3


def test_so_many_are_looked_for_at_most() -> None:
    assert 0 < len(related_words("place", "english")) <= MAX_WORDS
    assert related_words("xyzzy", "english") == ()


@pytest.mark.parametrize(
    "asked",
    [
        "What's the weather like in Norway?",
        "What is it like to live in Norway?",
        "whats norway like",
        "What was the food there like?",
        "What does the house in Norway look like?",
        "How's Norway's weather been like?",
    ],
)
def test_who_asks_what_something_is_like_asks_for_no_liking(asked: str) -> None:
    assert not sought(asked, "like")
    assert not sought(asked, "enjoy")
    kayak = "The kayak is yours for the day. Enjoy the water!"
    assert kayak not in person(Said(kayak), *FILLER).recall(asked)


@pytest.mark.parametrize(
    "asked",
    ["What does Otto like?", "What is the tea I like?", "Would Otto like to look at Norway?"],
)
def test_who_asks_for_a_liking_finds_what_is_enjoyed(asked: str) -> None:
    assert sought(asked, "like")
    assert sought(asked, "enjoy")
