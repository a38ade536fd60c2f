"""What goes into the prompt: within the budget, nothing twice, nothing for nothing."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.question import read_question
from proxy.recall.ranking.excerpts import GAP, Excerpter
from proxy.recall.ranking.score import LONG_TOKENS, READ_FACTOR, Ranked, count_worth_reading
from proxy.recall.ranking.select import (
    BLOCK_TOKENS,
    BRIEF_TOKENS,
    EXCERPT_TOKENS,
    FEW_TOKENS,
    OMISSION_TOKENS,
    PASSAGE_TOKENS,
    SESSION_TOKENS,
    SIMILAR_SHARE,
    Passage,
    SimilarTexts,
    choose_passages,
    is_relevant,
)
from tests.support.store.remembering import NOW, Person, Said, person

WORDS = st.sampled_from(["apple", "bread", "cedar", "delta", "ember", "frost"])
PASSAGES = st.lists(
    st.tuples(st.lists(WORDS, max_size=40).map(" ".join), st.integers(1, 4), st.integers(0, 900)),
    max_size=20,
)
MATCHES = Person([Said("apple")]).matches(read_question("apple", (), NOW))


def ranked(passage: Passage) -> Ranked:
    return Ranked(passage.number, passage.session, passage.seq, 0, passage.tokens, 1.0, (0.0,) * 7)


def passages(made: list[tuple[str, int, int]]) -> list[Passage]:
    return [
        Passage(number, session, number, "user", text, tokens)
        for number, (text, session, tokens) in enumerate(made)
    ]


def chosen(given: list[Passage], budget: int) -> list[Passage]:
    numbered = {passage.number: passage for passage in given}
    return choose_passages(MATCHES, [*map(ranked, given)], numbered.get, budget)


@given(PASSAGES, st.integers(-10, 2_000))
def test_the_budget_holds_with_all_framing(made: list[tuple[str, int, int]], budget: int) -> None:
    got = chosen(passages(made), budget)
    framing = PASSAGE_TOKENS * len(got) + SESSION_TOKENS * len({each.session for each in got})
    assert not got or sum(each.tokens for each in got) + framing + BLOCK_TOKENS <= budget


@given(PASSAGES)
def test_rank_order_is_kept_and_nothing_is_said_twice(made: list[tuple[str, int, int]]) -> None:
    got = chosen(passages(made), 2_000)
    numbers = [each.number for each in got]
    assert numbers == sorted(numbers)
    texts = [frozenset(each.text.split()) for each in got if not each.is_excerpt]
    assert len(set(texts)) == len(texts)


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh")), max_size=12), st.integers(0, 3))
def test_similar_texts_are_found_as_by_comparing_all(
    texts: list[frozenset[str]], shown: int
) -> None:
    taken = texts[:shown]
    similar = SimilarTexts(taken)
    for words in texts[shown:]:
        expected = any(len(words & other) >= SIMILAR_SHARE * len(words | other) for other in taken)
        assert similar.has_similar(words) == expected
        if len(words) % 2:  # others are not taken, though asked for
            similar.add(words)
            taken.append(words)


def test_what_does_not_fit_is_skipped_for_what_does() -> None:
    given = passages([("apple bread", 1, 30), ("cedar delta", 1, 250), ("ember frost", 1, 30)])
    assert [each.number for each in chosen(given, 200)] == [0, 2]


def test_a_passage_in_an_open_session_costs_no_second_date() -> None:
    together = passages([("apple bread", 1, 30), ("cedar delta", 1, 30)])
    budget = BLOCK_TOKENS + SESSION_TOKENS + 2 * (30 + PASSAGE_TOKENS)
    assert len(chosen(together, budget)) == 2
    assert len(chosen([together[0], msgspec.structs.replace(together[1], session=2)], budget)) == 1


def test_what_is_gone_from_history_is_left_out() -> None:
    given = passages([("apple", 1, 10), ("bread", 1, 10)])
    assert choose_passages(MATCHES, [*map(ranked, given)], {1: given[1]}.get, 500) == [given[1]]


def test_the_question_asked_before_is_not_recalled() -> None:
    asked = "Where did the cartographer hide the atlas of Patagonia?"
    answer = Said("The atlas of Patagonia lies under the cartographer's bed.", session=2)
    assert person(Said(asked), answer).recall(asked) == [answer.text]


def test_near_duplicates_go_in_once() -> None:
    said = "The ceremony in the botanical garden begins at seven in the evening"
    got = person(
        Said(said, session=1), Said(said + " sharp", session=2), Said("Bring seeds.", session=2)
    ).recall("When does the ceremony begin?")
    assert sum("ceremony" in text for text in got) == 1


def test_near_duplicates_without_spaces_go_in_once() -> None:
    said = "植物园的典礼在晚上七点开始，请大家准时到场"
    got = person(Said(said, session=1), Said(said + "。", session=2)).recall("典礼几点开始？")
    assert got == [said]


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of Mongolia?",
        "Translate this poem into Norwegian.",
        "Welche Temperatur hat die Sonne?",
        "蒙古的首都是哪里？",
        "thanks!",
    ],
)
def test_a_question_about_something_else_recalls_nothing(text: str) -> None:
    assert person(Said("My aunt keeps bees near Exeter.")).recall(text) == []


def test_one_telling_word_is_enough_however_much_else_is_asked() -> None:
    others = [Said(f"Die Rechnung Nummer {n} ist bezahlt.", session=n + 1) for n in range(40)]
    hers = [Said(f"Reinhard {text}", session=50) for text in ("kommt spät.", "mag Tee.")]
    asked = "Wann wollte Reinhard aufhören und wann geht er nun wirklich endgültig?"
    got = Person([*others, *hers]).recall(asked)
    assert {each.text for each in hers} <= set(got)


def test_words_that_many_passages_have_recall_nothing_beside_a_rarer_one() -> None:
    texts = [f"the train over the mountains, rain on day {n}" for n in range(60)]
    many = [Said(text, session=n + 1) for n, text in enumerate(texts)]
    ferry = Said("The ferry was late.", session=99)
    assert Person([*many, ferry]).recall("rain, train and the ferry?")[:1] == [ferry.text]
    matches = Person([*many, ferry]).matches(read_question("rain, train and the ferry?", (), NOW))
    assert np.count_nonzero(matches.cover) == 1


def test_a_question_that_was_asked_often_is_still_answered() -> None:
    told = Said("My dentist is Doctor Weber.", session=1)
    again = [Said("Who is my dentist?", session=n + 2) for n in range(30)]
    assert told.text in Person([told, *again]).recall("Who is my dentist?")
    assert told.text in Person([told, *again]).recall("Who is my usual dentist?")


def test_what_is_not_asked_of_memory_recalls_nothing_for_words_that_many_passages_have() -> None:
    tests = Person([Said(f"The tests of module {n} fail.", session=n + 1) for n in range(30)])
    pointing_back = tests.matches(read_question("and again?", ("The tests fail.",), NOW))
    general = tests.matches(read_question("write me some tests", (), NOW))
    assert pointing_back.question.context_terms
    assert general.question.is_general
    assert not is_relevant(pointing_back, 0.15)
    assert not is_relevant(general, 0.15)


def test_that_a_passage_tells_a_time_is_no_reason_to_recall_it() -> None:
    said = [Said(f"We met on the {n}th of May at {n} o'clock.", session=n) for n in (4, 5)]
    assert person(*said).recall("When did Zanzibar secede?") == []


def test_the_floor_can_be_set() -> None:
    question = read_question("bees of Mongolia and Norwegian poems", (), NOW)
    matches = person(Said("My aunt keeps bees near Exeter.")).matches(question)
    assert is_relevant(matches, 0.0)
    assert not is_relevant(matches, 0.9)


def test_an_empty_memory_recalls_nothing() -> None:
    assert Person([]).recall("Where are the bees?") == []
    assert not is_relevant(Person([]).matches(read_question("Where are the bees?", (), NOW)), 0.0)


def test_a_long_passage_is_cut_to_what_matters() -> None:
    other = [f"Paragraph {n} is about the history of the harbour and its boats." for n in range(90)]
    matter = "The spare key of the greenhouse hangs behind the barometer."
    text = "\n".join([*other[:60], matter, *other[60:]])
    (cut, *_) = person(Said(text, "assistant")).recall("Where is the greenhouse key?", budget=600)
    assert matter in cut
    assert GAP.strip() in cut
    assert len(cut) < len(text) / 3
    assert all(part.strip() in text for part in cut.split(GAP.strip()))


def test_a_long_passage_without_breaks_is_cut_too() -> None:
    text = "蜂蜜" * 900 + "温室的备用钥匙挂在气压计后面" + "港口" * 900
    (cut, *_) = person(Said(text, "assistant")).recall("温室的钥匙在哪里？", budget=900)
    assert "气压计" in cut
    assert len(cut) < len(text)


def test_an_excerpt_says_so_and_keeps_its_place() -> None:
    text = "apple bread. " * 400
    (got,) = chosen([Passage(0, 1, 5, "user", text, 1_200)], 1_000)
    assert got.is_excerpt
    assert (got.number, got.session, got.seq) == (0, 1, 5)
    assert got.tokens <= 1.1 * EXCERPT_TOKENS + 1 < LONG_TOKENS


LONG_TEXT = "apple bread. " * 400


def long(number: int, tokens: int = 600) -> Passage:
    text = LONG_TEXT.replace("bread", f"bread{number}")
    return Passage(number, number + 1, 5, "assistant", text, tokens)


def test_an_excerpt_of_two_pieces_fits_into_the_room_of_a_general_question() -> None:
    (got,) = chosen([long(0, 400)], FEW_TOKENS)
    assert got.is_excerpt and got.tokens > EXCERPT_TOKENS


def test_what_was_cut_is_whole_again_where_there_is_room_left() -> None:
    given = [long(0), long(1), long(2)]
    assert [each.is_excerpt for each in chosen(given, 3 * 600 + 100)] == [False, False, False]
    # Three excerpts, and the rest of the best two texts that it is enough for.
    assert [each.is_excerpt for each in chosen(given, 1_600)] == [False, False, True]
    assert [each.is_excerpt for each in chosen([given[0], long(1, 5_000), given[2]], 1_700)] == [
        *(False, True, False)
    ]
    assert all(each.is_excerpt for each in chosen(given, 800))


def test_what_is_only_chosen_to_spare_makes_no_text_whole() -> None:
    given = long(0)
    (whole,) = choose_passages(MATCHES, [ranked(given)], {0: given}.get, 900, reserve=200)
    assert not whole.is_excerpt
    (cut,) = choose_passages(MATCHES, [ranked(given)], {0: given}.get, 900, reserve=300)
    assert cut.is_excerpt


def test_what_was_recalled_as_an_excerpt_is_one_again() -> None:
    given = long(0)
    before = msgspec.structs.replace(ranked(given), tokens=EXCERPT_TOKENS)
    (got,) = choose_passages(MATCHES, [before], {0: given}.get, 2_000)
    assert got.is_excerpt


FOOD = ("rice", "toast", "pumpkin", "noodles", "lentils", "walnuts", "spinach", "grapes", "kiwi")


def sheet(yes: str, no: str, mark: str = "- ", between: str = "") -> str:
    """Two lists of one sheet, each of several pieces."""
    rest = ", fresh, dried, frozen or from a tin, at home or at friends', with or without salt"
    items = between + "\n".join(f"{mark}{food}{rest}" for food in FOOD)
    intro = "Here is the sheet from my clinic, for the week before they look at it.\n\n"
    return f"{intro}{yes}\n{items.replace('spinach', 'bread')}\n{no}\n{items}\nThat is all of it."


def cut_for_spinach(text: str) -> str:
    question = read_question("How do I cook spinach?", (), NOW)
    return Excerpter(question, dict.fromkeys(question.terms, 1.0)).excerpt(
        text, len(text) // 4, EXCERPT_TOKENS
    )


@pytest.mark.parametrize(
    "text",
    [
        sheet("You may eat:", "Never eat any of:"),
        sheet("你可以吃：", "Never eat any of："),
        sheet("## Good for you", "## Never eat any of"),
        sheet("**Good for you**", "**Never eat any of**"),
        sheet("You may eat:", "**Never eat any of:**", "1. ", "\n"),
        sheet("You may eat:", "Never eat any of:", ""),
    ],
    ids=["colon", "wide-colon", "title", "bold", "numbered", "plain"],
)
def test_an_excerpt_of_a_list_begins_with_what_the_list_is_of(text: str) -> None:
    cut = cut_for_spinach(text)
    assert "spinach" in cut and "toast" not in cut
    assert cut.count("Never eat any of") == 1
    assert "You may" not in cut and "Good for" not in cut and "你可以吃" not in cut
    assert len(cut) // 4 <= EXCERPT_TOKENS + OMISSION_TOKENS


@pytest.mark.parametrize(
    "above",
    ["Never eat any of:\n- stones\n- glass\n", "```\n# never eat\n```\n"],
    ids=["behind-a-list", "comment-of-code"],
)
def test_what_stands_behind_a_list_or_code_is_not_told_under_its_heading(above: str) -> None:
    text = above + "\n".join(f"On day {n} we walk to the sea, in the rain too." for n in range(60))
    assert "ever eat" not in cut_for_spinach(f"{text} Then there is spinach for all.")


def test_a_heading_costs_no_piece_of_its_text() -> None:
    text = sheet("You may eat:", f"Never eat what {'really ' * 60}hurts, which is:")
    assert "spinach" in cut_for_spinach(text) and "Never" not in cut_for_spinach(text)


def advice(said: str, last: str) -> str:
    """A long answer that says one sentence again and again, and another near its end."""
    rest = "It was settled long ago, and nobody minded. " * 8
    return "\n\n".join(f"{last if n == 6 else said} {rest}" for n in range(8))


@pytest.mark.parametrize(
    ("asked", "alike", "meant"),
    [
        ("Which tea did you recommend for the evening?", "Tell the team.", "Rooibos is a tea."),
        ("Which tyres did you suggest for my car?", "Be careful here.", "Cars want quiet ones."),
        ("What did you say about the ABS?", "This is about time.", "The ABS is old."),
        ("What did UPS want?", "Put up the shelf.", "UPS needs a signature."),
        ("Was ist mit dem Tor?", "Das ist eine Torte.", "Die Tore sind neu."),
        ("Wie ist der Garten?", "Das ist so.", "Ein Gartenhaus steht hier."),
        ("kot", "Pies.", "Kota nie ma."),
        ("What did the motivator say?", "It was in motion.", "Find your motive first."),
        ("What did I buy in May?", "The buyer is here.", "I bought a kite."),
        ("What of the 12,500 euros?", "It was 12 euros.", "Put 12,500 euros into bonds."),
        ("Which cities did I mention?", "A citizen spoke.", "One city is Rome."),
        ("Which children did I mention?", "It was a chill.", "One child is ill."),
    ],
)
def test_an_excerpt_has_the_words_that_were_asked_and_none_that_only_begins_like_them(
    asked: str, alike: str, meant: str
) -> None:
    question, text = read_question(asked, (), NOW), advice(alike, meant)
    cutter = Excerpter(question, dict.fromkeys(question.terms, 1.0))
    assert meant in cutter.excerpt(text, len(text) // 4, EXCERPT_TOKENS)


def test_an_excerpt_of_code_has_its_fences() -> None:
    lines = [f"value_{n} = compute({n})" for n in range(200)]
    lines[120] = "greenhouse = key('barometer')"
    text = "Here it is:\n```python\n" + "\n".join(lines) + "\n```\nThat is all."
    question = read_question("Where is the greenhouse?", (), NOW)
    cutter = Excerpter(question, dict.fromkeys(question.terms, 1.0))
    cut = cutter.excerpt(text, len(text) // 4, EXCERPT_TOKENS)
    assert "greenhouse" in cut and "value_9 " not in cut
    before, _, after = cut.partition("greenhouse")
    assert before.count("```") == 1
    assert after.count("```") % 2


@given(PASSAGES, st.integers(0, 2_000))
def test_the_shortlist_holds_all_that_can_be_chosen_in_order(
    made: list[tuple[str, int, int]], budget: int
) -> None:
    given = [*map(ranked, passages(made))]
    short = given[
        : count_worth_reading(np.array([each.tokens for each in given], np.uint16), budget)
    ]
    rest = sum(min(each.tokens, LONG_TOKENS) for each in short)
    assert len(short) == len(given) or rest + PASSAGE_TOKENS * len(short) > READ_FACTOR * budget


def _exchange(question: str, answer: str, role: str = "assistant", size: int = 20) -> list[Passage]:
    asker = "user" if role == "assistant" else "assistant"
    return [
        Passage(2, 1, 2, role, answer, size),
        Passage(9, 2, 9, "user", "something else altogether", 20),
        Passage(1, 1, 1, asker, question, 20),
    ]


@pytest.mark.parametrize("role", ["assistant", "user"])
def test_an_answer_brings_its_question_along(role: str) -> None:
    got = chosen(_exchange("Which lamp is it?", "The green one.", role), 2_000)
    assert [each.number for each in got] == [2, 1, 9]


def test_only_a_short_reply_of_the_user_needs_its_question() -> None:
    got = chosen(_exchange("Which lamp is it?", "The green one.", "user", BRIEF_TOKENS + 1), 2_000)
    assert [each.number for each in got] == [2, 9, 1]


def test_what_asks_nothing_waits_its_turn() -> None:
    got = chosen(_exchange("I bought a lamp.", "How nice, a lamp."), 2_000)
    assert [each.number for each in got] == [2, 9, 1]


def test_a_question_comes_along_only_where_it_fits() -> None:
    room = BLOCK_TOKENS + SESSION_TOKENS + 20
    got = chosen(_exchange("Which lamp is it?", "The green one."), room)
    assert [each.number for each in got] == [2]
