"""Which items a filter lets through, by the values of their fields.  Pure.

The rules are those of LangGraph's store.  A filter names fields: {"field": wanted}, nested as the
value is.  What is wanted is a value to be equal to, or operators that must all hold.  A field that
is missing is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan


def check(wanted: object) -> None:
    """Raise ValueError, naming it, where an operator is none."""
    if isinstance(wanted, list):
        for each in wanted:
            check(each)
    if isinstance(wanted, dict):
        unknown = sorted(wanted.keys() - OPERATORS.keys()) if _has_operators(wanted) else []
        if unknown:
            raise ValueError(f"{unknown[0]} is not one of: {', '.join(OPERATORS)}")
        for each in wanted.values() if not _has_operators(wanted) else ():
            check(each)


def fits(value: object, wanted: object) -> bool:
    """Whether a value is what is wanted; a filter that ``check`` lets through, and an item's."""
    if isinstance(wanted, dict):
        if _has_operators(wanted):
            return all(OPERATORS[name](value, bound) for name, bound in wanted.items())
        return isinstance(value, dict) and all(
            fits(value.get(name), each) for name, each in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(fits(*pair) for pair in zip(value, wanted, strict=True))
        )
    return _equal(value, wanted)


def _has_operators(wanted: Mapping[str, object]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _equal(value: object, other: object) -> bool:
    """Python takes true for 1; JSON does not."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _compared(value: object, other: object) -> int | None:
    """-1, 0, 1: less, equal, greater; None where the two have no order.

    Numbers, and texts that are numbers, by size, other texts as texts.
    """
    mine, its = _number(value), _number(other)
    if mine is not None and its is not None:
        return (mine > its) - (mine < its)
    if isinstance(value, str) and isinstance(other, str):
        return (value > other) - (value < other)
    return None


def _number(value: object) -> float | None:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, other: not _equal(value, other),
    "$gt": lambda value, other: _compared(value, other) == 1,
    "$gte": lambda value, other: _compared(value, other) in (0, 1),
    "$lt": lambda value, other: _compared(value, other) == -1,
    "$lte": lambda value, other: _compared(value, other) in (-1, 0),
}
