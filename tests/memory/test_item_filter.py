"""Filters of items, beyond what the memory API's own tests show."""

from __future__ import annotations

import pytest

from proxy.memory.items import OPERATORS, check_filter, matches_filter


@pytest.mark.parametrize("operator", ["$gt", "$gte", "$lt", "$lte"])
@pytest.mark.parametrize(
    ("value", "bound"),
    [
        pytest.param(None, 1, id="null"),
        pytest.param(1, None, id="null-as-bound"),
        pytest.param(True, 0, id="a-boolean-is-no-number"),
        pytest.param("a", 1, id="text-and-number"),
        pytest.param([1], 1, id="list"),
        pytest.param({"a": 1}, {"a": 0}, id="objects"),
        pytest.param(10**400, 1, id="beyond-all-floats"),
    ],
)
def test_what_has_no_order_fits_no_comparison(operator: str, value: object, bound: object) -> None:
    assert not matches_filter(value, {operator: bound})
    assert matches_filter(value, {"$ne": bound})


def test_numbers_are_compared_by_size_also_as_texts_and_other_texts_as_texts() -> None:
    assert (
        matches_filter("9", {"$lt": "10"})
        and matches_filter(9.5, {"$gt": "9"})
        and matches_filter("9", {"$lte": 9})
    )
    assert (
        matches_filter("nine", {"$gt": "10"})
        and matches_filter("b", {"$gt": "a"})
        and matches_filter("nan", {"$gte": "na"})
    )


def test_a_field_that_is_missing_is_null() -> None:
    assert matches_filter({}, {"a": None}) and matches_filter({}, {"a": {"$ne": 1}})
    assert not matches_filter({}, {"a": {"$ne": None}}) and not matches_filter(
        {}, {"a": {"b": None}}
    )


def test_all_that_is_wanted_must_fit() -> None:
    value = {"a": {"b": [1, {"c": "d"}]}, "e": 2}
    assert matches_filter(value, {"a": {"b": [{"$gt": 0}, {"c": "d"}]}, "e": {"$gt": 1, "$lt": 3}})
    assert not matches_filter(value, {"a": {"b": [{"$gt": 0}, {"c": "x"}]}})
    assert not matches_filter(value, {"e": {"$gt": 1, "$lt": 2}})
    assert matches_filter(value, {}) and matches_filter(value, {"$eq": value})


@pytest.mark.parametrize(
    "wanted", [{"a": {"$in": []}}, {"a": [{"$x": 1}]}, {"$eq": 1, "b": 2}, {"a": {"b": {"$": 1}}}]
)
def test_what_is_no_operator_is_named(wanted: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"is not one of: \$eq"):
        check_filter(wanted)


def test_values_below_an_operator_are_no_filters() -> None:
    for operator in OPERATORS:
        check_filter({"a": {operator: {"$any": 1}}})
