"""What a user message asks for, and when it asks for nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.question import FRAME_WEIGHT, MAX_WORDS, read_question
from proxy.recall.query.stemming import stem
from proxy.recall.ranking.packing import term_of
from tests.support.store.remembering import NOW, Said, person

SMALL_TALK = (
    "thanks!", "Thank you so much", "ok", "Great, that's perfect.", "hello", "yes please", "👍", "",
    "Danke schön!", "Guten Morgen", "ja klar", "gracias", "¡Muchas gracias!", "merci", "شكرا",
    "谢谢", "好的", "好的，谢谢你！", "你好", "嗯嗯", "继续", "ありがとうございます", "はい",
    "안녕하세요", "спасибо", "...", "?!",
)  # fmt: skip


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_asks_for_nothing(text: str) -> None:
    assert read_question(text, (), NOW).is_empty


@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_asks_for_nothing_amid_a_conversation(text: str) -> None:
    assert read_question(
        text, ("Which plants survive a dry balcony?", "Sedum and lavender."), NOW
    ).is_empty


@pytest.mark.parametrize(
    "text",
    ["thanks, and the boiler?", "好的，锅炉呢", "ok, next: PostgreSQL", "Danke. Der Kessel?"],
)
def test_small_talk_with_a_topic_asks_for_the_topic(text: str) -> None:
    assert not read_question(text, (), NOW).is_empty


def test_function_words_alone_ask_for_nothing() -> None:
    assert read_question("and what would he have been there for?", (), NOW).is_empty


def test_a_follow_up_asks_for_what_was_spoken_of() -> None:
    her = "My aunt Rosalind keeps bees near Exeter."
    other = "My dentist moved to Bristol."
    before = ("Tell me about aunt Rosalind.", "She is fond of her bees.")
    assert (
        person(Said(other), Said(her, session=2)).recall("and where does she live?", before)[0]
        == her
    )


@pytest.mark.parametrize("text", ["Und woher kennt sie die Familie?", "And the neighbours?"])
def test_a_short_message_that_goes_on_is_a_follow_up(text: str) -> None:
    her = "Aunt Rosalind keeps bees near Exeter."
    assert person(Said(her)).recall(text, ("Who is Rosalind?",)) == [her]


def test_a_follow_up_does_not_drown_its_own_words() -> None:
    own = Said("The red bicycle has a flat tyre.", session=1)
    earlier = Said("The blue canoe needs new paint.", session=2)
    before = ("What does the blue canoe need?", "The canoe needs paint.")
    assert person(earlier, own).recall("and that bicycle?", before)[0] == own.text


def test_a_message_of_its_own_is_not_a_follow_up() -> None:
    before = ("What does the blue canoe need?",)
    alone = read_question("Which flowers did Rosalind plant behind the old greenhouse?", (), NOW)
    assert (
        read_question("Which flowers did Rosalind plant behind the old greenhouse?", before, NOW)
        == alone
    )


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("And Rosalind?", True),
        ("I met Rosalind.", False),
        ("I co z Rosalindą?", True),
        ("Und Rosalind?", True),
        ("En Rosalind?", True),
        ("还有呢？", True),
    ],
)
def test_a_message_goes_on_in_its_own_language(text: str, goes_on: bool) -> None:
    before = ("Tell me about the blue canoe.",)
    assert (read_question(text, before, NOW) != read_question(text, (), NOW)) == goes_on


@pytest.mark.parametrize(
    ("text", "user", "assistant"),
    [
        ("What did I say about taxes?", True, False),
        ("Which book did you recommend?", False, True),
        ("你给我推荐了哪本书？", True, True),
        ("我和你提到过哪本书？", True, False),
        ("What did Rosalind plant?", False, False),
    ],
)
def test_a_question_tells_whose_words_it_asks_for(text: str, user: bool, assistant: bool) -> None:
    question = read_question(text, (), NOW)
    assert (question.about_user, question.about_assistant) == (user, assistant)


def weights(text: str, *words: str) -> list[float]:
    sought = read_question(text, (), NOW).words
    terms = [term_of(stem(word, "english")) for word in words]
    return [word.weight for term in terms for word in sought if term in word.terms]


def test_words_of_how_one_asks_count_half() -> None:
    assert weights("kinds", "kinds") == [FRAME_WEIGHT]
    assert weights("What kinds of bicycle?", "kinds", "bicycle") == [FRAME_WEIGHT, 1.0]


def test_a_language_has_its_own_words_of_how_one_asks() -> None:
    assert weights("Which Art was it?", "art") == [1.0]
    (word,) = [
        each for each in read_question("Welche Art war es?", (), NOW).words if each.text == "art"
    ]
    assert word.weight == FRAME_WEIGHT


def test_what_a_question_is_about_is_found_before_how_it_asks() -> None:
    kind = Said("Such a kind of fog was on the river.", session=1)
    canoe = Said("Somebody left a canoe on the lawn.", session=2)
    for said in ((kind, canoe), (canoe, kind)):
        assert person(*said).recall("What kind of canoe is it?")[0] == canoe.text


@given(st.text(), st.lists(st.text(), max_size=3))
def test_any_text_is_read_and_asks_for_few_terms(text: str, before: list[str]) -> None:
    question = read_question(text, before, NOW)
    assert len(question.words) <= MAX_WORDS + 4 * 8 + 1
    assert len(question.terms) == len(
        [
            *(term for word in question.words for term in word.terms),
            *question.day_terms,
            *question.speaker_terms,
        ]
    )


@given(st.text(min_size=1))
def test_a_word_is_asked_for_once(text: str) -> None:
    firsts = [word.terms[0] for word in read_question(f"{text} {text}", (), NOW).words]
    assert len(firsts) == len(set(firsts))


def test_words_too_long_for_a_name_are_no_speakers() -> None:
    """They would fill the cache of names with 50 MB."""
    named = read_question(f"Did {'A' * 300} or Anna say so?", (), NOW)
    assert len(named.speaker_terms) == len(read_question("Did Anna say so?", (), NOW).speaker_terms)
