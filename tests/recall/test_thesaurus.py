"""A question in other words than its answer: the thesaurus, and when it is asked."""

from __future__ import annotations

from importlib.resources import files

import pytest

from proxy.recall.lexicon.folding import fold
from proxy.recall.query import question as questions
from proxy.recall.query.question import SYNONYM_WEIGHT, expand, read_question
from proxy.recall.query.related import CODES, synonyms
from proxy.recall.query.stemming import stem
from proxy.recall.ranking.packing import term_of
from tests.support.store.passages import Memory, ids, said
from tests.support.store.remembering import NOW

REPAIRED = "Otto repaired the automobile."
ASKED = "Who mended our car?"


@pytest.mark.parametrize("code", CODES.values())
def test_a_line_has_a_stem_and_what_is_near_it(code: str) -> None:
    text = (files("proxy.recall.lexicon") / "thesaurus" / f"{code}.txt").read_text("utf-8")
    assert text == fold(text) and text.endswith("\n")
    lines = [line.split(" ") for line in text.splitlines()]
    assert [line[0] for line in lines] == sorted({line[0] for line in lines})
    assert all(2 <= len(line) <= 6 and all(line) for line in lines) and len(lines) > 1000


@pytest.mark.parametrize(
    ("word", "language", "near"),
    [
        ("doctors", "english", "physician"),
        ("medico", "spanish", "doctor"),
        ("maison", "french", "résidence"),
        ("xyzzy", "english", None),
        ("doctor", "klingon", None),
    ],
)
def test_words_near_in_meaning(word: str, language: str, near: str | None) -> None:
    found = synonyms(stem(word, language), language)
    assert (near in found) if near else found == ()


def test_they_are_looked_for_for_less() -> None:
    asked = read_question(ASKED, (), NOW)
    wider = expand(asked)
    assert wider.words[: len(asked.words)] == asked.words
    more = {word.terms[0]: word for word in wider.words[len(asked.words) :]}
    found = more[term_of(stem("automobile", "english"))]
    assert found.is_expansion and found.weight <= SYNONYM_WEIGHT


def test_what_is_looked_for_already_is_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = read_question("Is the car an automobile?", (), NOW)
    terms = expand(asked).terms
    assert len(set(terms)) == len(terms) > len(asked.terms)
    monkeypatch.setattr(questions, "MAX_SYNONYMS", 1)
    assert len(expand(asked).terms) == len(asked.terms) + 1


@pytest.mark.parametrize("text", ["Who is Xyzzy?", "我的车在哪里？"])
def test_a_question_of_which_nothing_is_known_stays(text: str) -> None:
    asked = read_question(text, (), NOW)
    assert expand(asked) is asked


async def filled(remembering: Memory, *texts: str) -> None:
    for n, text in enumerate((*texts, "It rained.", "The soup was cold.")):
        await remembering.commit(f"s{n}", said(f"x{n}", text, user="kai"))


async def test_what_was_said_in_other_words_is_recalled(remembering: Memory) -> None:
    await filled(remembering, REPAIRED)
    assert ids(await remembering.recall(ASKED)) == ["x0.0"]


async def test_other_words_are_not_looked_for_where_a_passage_has_those_of_the_question(
    remembering: Memory,
) -> None:
    await filled(remembering, REPAIRED, "Mia mended our car.")
    assert ids(await remembering.recall(ASKED)) == ["x1.0"]


@pytest.mark.parametrize("text", ["Thanks a lot!", "How long does it take?"])
async def test_what_asks_for_nothing_older_gets_nothing(remembering: Memory, text: str) -> None:
    await filled(remembering, REPAIRED)
    before = ("The automobile is ready.", "It costs 90 euros.")
    assert not await remembering.recall(text, previous_texts=before)
