"""Which passages come first, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.recall.query.question import read_question
from proxy.recall.ranking.match import MAX_CANDIDATES, REACH, candidates
from proxy.recall.ranking.packing import FILLER as POLITE
from proxy.recall.ranking.packing import ROW
from proxy.recall.ranking.score import (
    LONG_TOKENS,
    MAX_RANKED,
    MIN_SHARE,
    PARTS,
    SHORT_TOKENS,
    WEIGHTS,
    RankingOptions,
    rank_passages,
)
from tests.support.store.remembering import NOW, Person, Said, person

TEXTS = st.lists(
    st.builds(
        Said,
        st.lists(st.sampled_from(["apple", "bread", "cedar", "delta", "ember"])).map(" ".join),
        st.sampled_from(("user", "assistant")),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


def first(who: Person, text: str, options: RankingOptions | None = None) -> str:
    return who.said[who.ranked(text, (), options)[0].number].text


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    common = [Said(f"The train to place{n} was late.", session=n + 1) for n in range(8)]
    rare = Said("The otter was asleep today.", session=20)
    assert first(person(*common, rare), "train otter") == rare.text


def test_a_word_in_every_passage_scores_but_never_below_nothing() -> None:
    who = Person([Said("tea again", session=n + 1) for n in range(6)])
    matches = who.matches(read_question("tea?", (), NOW))
    assert matches.numbers.size == 6
    assert (matches.scores > 0).all()


def test_the_answer_follows_its_question() -> None:
    who = person(
        Said("Which breed is your puppy?", "assistant"),
        Said("A wire-haired dachshund.", "user"),
        Said("Lovely weather for walking.", "assistant"),
    )
    assert [each.number for each in who.ranked("breed of the puppy")] == [0, 1, 2]


def test_what_follows_a_question_gains_more_than_what_follows_a_statement() -> None:
    answers = (Said("A dachshund.", session=1), Said("A dachshund.", session=2))
    who = person(
        Said("Your puppy, which breed?", session=1),
        answers[0],
        Said("Your puppy, which breed.", session=2),
        answers[1],
    )
    parts = {each.number: each.parts for each in who.ranked("breed of the puppy")}
    assert parts[1]["neighbours"] > parts[3]["neighbours"] > 0


def test_a_neighbour_in_another_session_is_no_neighbour() -> None:
    apart = person(
        Said("Which breed is your puppy?", "assistant", session=1),
        Said("A puppy of no breed.", "user", session=2),
    )
    found = apart.ranked("breed of the puppy")
    assert ["neighbours" in each.parts for each in found] == [False, False]


def test_a_session_about_the_matter_lifts_its_passages() -> None:
    who = person(
        Said("The harvest festival was loud.", session=1),
        Said("We stayed for supper.", session=1),
        Said("Somebody sang.", session=1),
        Said("We went home at ten.", session=1),
        Said("We stayed for supper.", session=2),
    )
    parts = {each.number: each.parts for each in who.ranked("harvest festival supper")}
    assert parts[1]["lexical"] == parts[4]["lexical"]
    assert parts[1]["session"] > parts[4]["session"]


def test_what_a_session_begins_with_comes_before_the_same_further_on() -> None:
    other, tells = Said("We stayed for supper."), Said("The harvest festival was loud.")
    sessions = [[other, other, other, tells], [tells, other, other, other]]
    said = [replace(one, session=n) for n, talk in enumerate(sessions, 1) for one in talk]
    best, next_one = person(*said).ranked("harvest festival")[:2]
    assert (best.session, next_one.session) == (2, 1)
    assert best.parts["lexical"] == next_one.parts["lexical"]
    assert best.parts["opens"] == pytest.approx(WEIGHTS.is_first)
    assert "opens" not in next_one.parts


@pytest.mark.parametrize(("asked", "role"), [("my", "user"), ("did you suggest a", "assistant")])
def test_whose_words_are_asked_for_come_first(asked: str, role: str) -> None:
    for roles in (("user", "assistant"), ("assistant", "user")):
        said = (Said("A budget of nine hundred.", each, n) for n, each in enumerate(roles, 1))
        who = person(*said)
        assert who.said[who.ranked(f"what about {asked} budget")[0].number].role == role


def test_a_named_speaker_comes_before_those_who_name_them() -> None:
    to = Said("Anna: The sailing course is great fun, Marek.", session=1)
    by = Said("Marek: The sailing course is great fun, Anna.", session=2)
    assert first(person(to, by), "What does Marek think of the sailing course?") == by.text
    assert first(person(by, to), "What does Anna think of the sailing course?") == to.text


def test_a_long_passage_must_be_worth_its_price() -> None:
    brief = Said("The password of the router is under the lamp.", session=1)
    long = Said(f"The password of the router. {'Other matters entirely. ' * 80}", session=2)
    assert first(person(long, brief), "router password") == brief.text


@given(TEXTS, st.integers(1, 40))
def test_a_score_is_the_sum_of_its_parts_less_the_price(said: list[Said], times: int) -> None:
    longer = [replace(each, text=f"{each.text} " * times) for each in said]
    for each in Person(longer).ranked("apple cedar"):
        size = min(max(each.tokens, SHORT_TOKENS), LONG_TOKENS) / SHORT_TOKENS
        expected = max(0.0, sum(each.part_values)) / size**WEIGHTS.size_exponent
        assert each.score == pytest.approx(expected, rel=1e-4, abs=len(PARTS) * 5e-5)
        assert sum(each.parts.values()) == pytest.approx(sum(each.part_values))


def test_what_is_far_below_the_best_is_left_out() -> None:
    best = Said("The otter sanctuary in Bergen charges nine crowns.", session=1)
    weak = [Said(f"Nine items, list {n} of the shop.", session=n + 2) for n in range(30)]
    who = Person([best, *weak, *(Said(f"Note {n}", session=n + 40) for n in range(80))])
    assert (
        who.matches(read_question("nine crowns, otter sanctuary Bergen", (), NOW)).numbers.size
        == 31
    )
    assert who.ranked("nine crowns, otter sanctuary Bergen")[0].number == 0
    assert len(who.ranked("nine crowns, otter sanctuary Bergen")) == 1


@given(TEXTS)
def test_all_that_is_ranked_has_its_share_of_the_best(said: list[Said]) -> None:
    wholes = [max(0.0, sum(each.part_values)) for each in Person(said).ranked("apple cedar")]
    assert all(whole >= MIN_SHARE * max(wholes) - 5e-4 for whole in wholes)


def test_age_halves_a_score() -> None:
    who = Person(
        [
            Said("The meeting room is blue.", session=1, age=30),
            Said("The meeting room is blue.", session=2, age=0),
            Said("Something else.", session=3),
        ]
    )
    fresh, old = who.ranked("meeting room", (), RankingOptions(now=NOW, half_life_days=30))[:2]
    assert (fresh.number, old.number) == (1, 0)
    assert old.score == pytest.approx(fresh.score / 2, rel=1e-3)


def test_only_the_sessions_and_roles_wanted_are_ranked() -> None:
    who = person(
        Said("The lighthouse is open.", "user", session=1),
        Said("The lighthouse opens at nine.", "assistant", session=1),
        Said("The lighthouse is tall.", "user", session=2),
    )
    in_session = who.ranked("lighthouse", (), RankingOptions(session=1))
    assert {each.session for each in in_session} == {1}
    by_user = who.ranked("lighthouse", (), RankingOptions(roles=frozenset({"user"})))
    assert {who.said[each.number].role for each in by_user} == {"user"}
    assert who.ranked("lighthouse", (), RankingOptions(session=77)) == []


def test_a_dense_score_can_decide() -> None:
    who = person(Said("A lighthouse.", session=1), Said("A beacon.", session=1))
    assert (
        first(who, "lighthouse", RankingOptions(dense_scores={0: 0.1, 1: 0.9})) == "A lighthouse."
    )
    far = person(*(Said(f"lighthouse {n}", session=n + 1) for n in range(5)))
    assert first(far, "lighthouse", RankingOptions(dense_scores={3: 0.9, 1: 0.1})) == "lighthouse 3"


def test_dense_scores_of_other_passages_change_nothing() -> None:
    who = person(Said("A lighthouse."))
    assert who.ranked("lighthouse", (), RankingOptions(dense_scores={999: 1.0})) == who.ranked(
        "lighthouse", (), RankingOptions()
    )


def test_politeness_is_ranked_only_as_an_answer() -> None:
    said = (
        Said("Is the lighthouse open?", "assistant"),
        Said("Yes, thanks!"),
        Said("The lighthouse is tall.", "assistant"),
        Said("Wow, thanks!"),
    )
    who = person(*said)
    who.rows = who.rows.copy()
    who.rows["flags"][[1, 3]] |= POLITE
    assert {each.number for each in who.ranked("lighthouse")} & {1, 3} == {1}


def test_in_which_order_something_was_brought_up_is_asked_of_the_user() -> None:
    who = person(
        Said("I would like to see the lighthouse, and how it is painted every spring."),
        Said("The lighthouse was painted white in spring.", "assistant", session=2),
    )
    order = "In which order did I tell you of the lighthouse, that you walked me through?"
    assert who.said[who.ranked(order)[0].number].role == "user"
    assert who.said[who.ranked("lighthouse, painted in spring")[0].number].role == "assistant"


def test_what_has_nothing_to_do_with_the_question_is_not_ranked() -> None:
    who = person(
        Said("Good weather for once.", session=1),
        Said("The lighthouse is open.", session=2),
        Said("It opens at nine.", session=2),
    )
    assert [each.number for each in who.ranked("lighthouse")] == [1, 2]


def test_a_passage_that_has_no_row_is_not_ranked() -> None:
    who = person(Said("The lighthouse is open."))
    matches = who.matches(read_question("lighthouse", (), NOW))
    numbers = who.numbers(matches)
    assert rank_passages(matches, numbers, np.zeros(numbers.size, ROW), RankingOptions()) == []


def test_candidates_are_few_and_come_with_their_neighbours() -> None:
    who = Person([Said("rain" if n % 10 else "tea") for n in range(100)])
    around = {near for n in range(0, 100, 10) for near in range(n - REACH, n + REACH + 1)}
    assert who.numbers(who.matches(read_question("tea?", (), NOW))).tolist() == sorted(
        around - {-1, -2}
    )
    many = Person([Said("tea") for _ in range(4 * MAX_CANDIDATES)])
    found = candidates(many.matches(read_question("tea?", (), NOW)))
    assert MAX_CANDIDATES <= found.size <= MAX_CANDIDATES * (2 * REACH + 1)


def test_only_the_newest_postings_are_needed() -> None:
    who = Person([Said(f"tea number {n}", session=n + 1) for n in range(50)])
    found = who.matches(read_question("tea?", (), NOW), newest=10).numbers
    assert found.tolist() == list(range(40, 50))


@given(TEXTS, st.sampled_from(("apple", "my bread and cedar?", "Delta ember", "你好 frost")))
def test_a_ranking_is_ordered_distinct_and_bounded(said: list[Said], text: str) -> None:
    ranked = Person(said).ranked(text)
    scores = [each.score for each in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len({each.number for each in ranked}) == len(ranked) <= MAX_RANKED
    assert all(np.isfinite(scores))


@given(TEXTS)
def test_a_passage_that_covers_a_question_has_all_of_its_words(said: list[Said]) -> None:
    matches = Person(said).matches(read_question("apple cedar", (), NOW))
    for number, cover in zip(matches.numbers.tolist(), matches.cover.tolist(), strict=True):
        assert 0 < cover <= 1
        whole = {"apple", "cedar"} <= set(said[number].text.split())
        assert whole == (cover > 0.999)
