"""Vectors packed into bytes, and the search among them."""

from __future__ import annotations

import numpy as np
import pytest

from proxy.recall.ranking.packing import Array
from proxy.recall.semantic import vectors
from proxy.recall.semantic.vectors import NO_SIMILARITIES, Matrix, Similarities, pack

DIMENSIONS = 64


def some(count: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)


def matrix(rows: Array, first: int = 0) -> Matrix:
    return Matrix.read(first, b"".join(pack(rows)), DIMENSIONS)


def cosines(rows: Array, question: Array) -> Array:
    found: Array = rows @ question / np.linalg.norm(rows, axis=1) / np.linalg.norm(question)
    return found


def test_a_packed_vector_has_one_byte_for_each_dimension() -> None:
    assert [len(each) for each in pack(some(3))] == [DIMENSIONS] * 3


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_packing_costs_a_cosine_less_than_a_hundredth_whatever_the_length(scale: float) -> None:
    rows, question = some(5_000) * np.float32(scale), some(1, seed=2)[0]
    near = matrix(rows).similarities(question)
    assert near.numbers.tolist() == list(range(5_000))
    assert np.abs(near.scores - cosines(rows, question)).max() < 0.01


def test_a_passage_without_a_vector_is_near_nothing() -> None:
    rows = some(4)
    rows[1] = 0
    near = matrix(rows, first=10).similarities(rows[2])
    assert near.numbers.tolist() == [10, 12, 13]
    assert near.numbers[near.scores.argmax()] == 12


@pytest.mark.parametrize("rows", [some(0), np.zeros((3, DIMENSIONS), np.float32)])
def test_where_there_are_no_vectors_nothing_is_near(rows: Array) -> None:
    assert matrix(rows).similarities(some(1)[0]) is NO_SIMILARITIES


def test_a_question_without_a_meaning_is_as_far_from_everything() -> None:
    near = matrix(some(3)).similarities(np.zeros(DIMENSIONS, np.float32))
    assert near.scores.tolist() == [0, 0, 0] and not near.related


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([0.1, 0.2, 0.6], True, id="one-stands-out"),
        pytest.param([0.1, 0.2, 0.3], False, id="none-does"),
        pytest.param([0.70, 0.72, 0.90], True, id="one-stands-out-where-all-are-near"),
        pytest.param([0.70, 0.72, 0.76], False, id="none-does-where-all-are-near"),
        pytest.param([0.9], True, id="alone"),
        pytest.param([0.2], False, id="alone-and-far"),
        pytest.param([1.0, 1.0], True, id="the-same"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_a_passage_is_related_that_stands_out(scores: list[float], expected: bool) -> None:
    numbers = np.arange(len(scores), dtype=np.uint32)
    assert Similarities(numbers, np.array(scores, np.float32)).related is expected


def test_a_matrix_grows_by_what_follows_and_keeps_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "MAX_SEARCHED", 5)
    rows = some(7)
    grown = matrix(rows[:4]).extended(matrix(rows[4:], first=4))
    assert (grown.first, grown.end) == (2, 7)
    near, again = grown.similarities(rows[6]), matrix(rows[2:], first=2).similarities(rows[6])
    assert near.numbers.tolist() == again.numbers.tolist()
    assert near.scores.tolist() == again.scores.tolist()


def test_the_nearest_come_with_those_around_them() -> None:
    scores = np.zeros(100, np.float32)
    scores[[1, 50]] = 1
    near = Similarities(np.arange(100, dtype=np.uint32), scores)
    assert near.nearest(2).tolist() == [0, 1, 2, 3, 48, 49, 50, 51, 52]
    assert NO_SIMILARITIES.nearest().tolist() == []


def test_scores_are_given_for_the_passages_that_have_one() -> None:
    near = Similarities(np.array([3, 5, 9], np.uint32), np.array([0.5, 0.25, 0.125], np.float32))
    assert near.of(np.array([1, 5, 9, 11], np.uint32)) == {5: 0.25, 9: 0.125}
