"""In little room what neighbours only say again counts less."""

from __future__ import annotations

import pytest

from proxy.recall.query.question import read_question
from proxy.recall.ranking.repeats import FULL_WEIGHT_TOKENS
from proxy.recall.ranking.score import RankingOptions, rank_passages
from tests.support.store.remembering import NOW, Said, person

QUESTION = "When is the harvest festival?"
BOTH, ANOTHER = Said("The harvest festival is loud."), Said("The harvest festival is long.")


def neighbours(said: tuple[Said, ...], budget: int | None) -> dict[int, float]:
    """What the messages around each message count for it."""
    who = person(*said)
    matches = who.matches(read_question(QUESTION, (), NOW))
    numbers = who.numbers(matches)
    found = rank_passages(matches, numbers, who.rows[numbers], RankingOptions(now=NOW), budget)
    return {each.number: each.parts.get("neighbours", 0.0) for each in found}


@pytest.mark.parametrize("between", [(), (Said("Bring a coat."),)], ids=["beside", "two-away"])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_in_half_the_room_what_a_neighbour_says_again_counts_half(
    between: tuple[Said, ...], share: float
) -> None:
    said, last = (BOTH, *between, ANOTHER), 1 + len(between)
    all_of_it = neighbours(said, FULL_WEIGHT_TOKENS)
    part = neighbours(said, int(share * FULL_WEIGHT_TOKENS))
    assert 0 < part[0] == pytest.approx(share * all_of_it[0])
    assert 0 < part[last] == pytest.approx(share * all_of_it[last])


def test_what_a_neighbour_adds_counts_in_full_in_any_room() -> None:
    said = (Said("The harvest was early."), Said("It will be a long festival."))
    assert neighbours(said, 200) == pytest.approx(neighbours(said, FULL_WEIGHT_TOKENS))


def test_with_much_room_or_no_bound_neighbours_count_in_full() -> None:
    said = (BOTH, ANOTHER)
    assert (
        neighbours(said, FULL_WEIGHT_TOKENS)
        == neighbours(said, 4 * FULL_WEIGHT_TOKENS)
        == neighbours(said, None)
    )


def test_what_is_said_again_in_another_session_changes_nothing() -> None:
    said = (BOTH, Said(ANOTHER.text, session=2))
    assert neighbours(said, 200) == neighbours(said, FULL_WEIGHT_TOKENS)
