"""What an index stores of messages, and that hostile ones cost no more than long ones."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.question import read_question
from proxy.recall.query.words import MAX_TERMS, Analysis, TermEntry, analyse, pack
from proxy.recall.ranking.excerpts import Excerpter
from proxy.recall.ranking.packing import (
    ENDS_WITH_QUESTION,
    LENGTHS,
    SAID_BY_USER,
    coded_length,
    read_postings,
    read_rows,
)
from tests.support.store.remembering import NOW

MEGABYTE = 1_000_000
HOSTILE = [
    pytest.param("lorem ipsum dolor " * (MEGABYTE // 18), id="a megabyte"),
    pytest.param("x" * MEGABYTE, id="no spaces"),
    pytest.param("😀" * (MEGABYTE // 4), id="emoji"),
    pytest.param("word " * 10_000, id="the same word"),
    pytest.param("".join(map(chr, range(0x4E00, 0x9FA0))) * 15, id="all of Chinese"),
    pytest.param("สวัสดี" * (MEGABYTE // 18), id="thai"),
    pytest.param("[" * MEGABYTE, id="brackets"),
    pytest.param("1," * (MEGABYTE // 2), id="digits"),
    pytest.param("8 May " * (MEGABYTE // 6), id="dates"),
    pytest.param("last " * (MEGABYTE // 5), id="times"),
    pytest.param("Aa-" * (MEGABYTE // 3), id="names"),
    pytest.param("? " * (MEGABYTE // 2), id="questions"),
    pytest.param(" " * MEGABYTE, id="spaces"),
    pytest.param("\u0301" * (MEGABYTE // 2), id="accents"),
    pytest.param("\ufdfa" * (MEGABYTE // 3), id="ligatures that grow"),
    pytest.param("\x00\ud800\x00" * 1_000, id="no text at all"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_message_is_bounded(text: str) -> None:
    began = time.process_time()
    analysis = analyse(text, NOW)
    question = read_question(text, (text, text), NOW)
    cut = Excerpter(question, dict.fromkeys(question.terms, 1.0)).excerpt(text, 200_000, 250)
    assert time.process_time() - began < 2.0
    assert len(analysis.terms) < 2 * MAX_TERMS
    assert len(question.terms) < 300
    assert len(cut) < 250 * 6


def test_a_thousand_words_more_cost_no_more_than_a_thousand_words() -> None:
    text = "An ordinary sentence about nothing in particular. " * 2_000
    assert analyse(text, NOW) == analyse(text + "unseen " * 1_000, NOW)


def test_frequency_and_length_count_what_says_something() -> None:
    analysis = analyse("the cat and the cats and a dog", NOW)
    assert analysis.length == 3
    assert sorted(analysis.terms.values())[-1] == 2


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("What is its name?", True),
        ("它叫什么？", True),
        ('He said "why?"', True),
        ("Is this it? [photo: a dog]", True),
        ("What a name.", False),
        ("Why? Because.", False),
        ("", False),
    ],
)
def test_a_message_asks_if_it_ends_with_a_question(text: str, asks: bool) -> None:
    assert analyse(text, NOW).asks is asks


def test_a_hint_decides_where_nothing_tells_the_language() -> None:
    assert analyse("Wanderschuhe", NOW, "german").language == "german"
    assert analyse("the boots that I bought", NOW, "german").language == "english"


def entry(analysis: Analysis, seq: int = 0, flags: int = 0, tokens: int = 5) -> TermEntry:
    return TermEntry(7, seq, 99, NOW, tokens, flags, analysis)


def test_rows_say_where_a_passage_is() -> None:
    asking = analyse("Is the kettle on?", NOW)
    packed = pack([entry(asking, 3, SAID_BY_USER, 70_000), entry(analyse("Yes.", NOW), 4)], 10)
    first, second = read_rows(packed.rows)
    assert first.tolist() == (
        7, 3, 99, int(NOW), 65_535, coded_length(asking.length), SAID_BY_USER | ENDS_WITH_QUESTION,
    )  # fmt: skip
    assert second["flags"] == 0


@given(st.lists(st.text(), max_size=5), st.integers(0, 2**31))
def test_postings_hold_each_term_of_each_passage_once(texts: list[str], first: int) -> None:
    entries = [entry(analyse(text, NOW)) for text in texts]
    packed = pack(entries, first)
    held = {
        (int(number), term): int(frequency)
        for term, data in packed.postings.items()
        for number, frequency, _ in read_postings(data)
    }
    assert held == {
        (first + place, term): min(255, frequency)
        for place, each in enumerate(entries)
        for term, frequency in each.analysis.terms.items()
    }


@given(st.integers(0, 60_000))
def test_a_coded_length_is_near_the_length(length: int) -> None:
    assert abs(float(LENGTHS[coded_length(length)]) - length) <= 1 + 0.05 * length
