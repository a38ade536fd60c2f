"""Adds the usage of several requests that made one answer.  Pure."""

from __future__ import annotations

from typing import TypeGuard

from proxy.chat import jsontext


def summed(first: bytes | None, second: bytes | None) -> bytes | None:
    """Two usage objects (JSON) added field by field, nested ones too; None counts as empty.

    Values that are not numbers are taken from the second.
    """
    if first is None or second is None:
        return second if first is None else first
    return jsontext.encode(_sum(jsontext.decode(first), jsontext.decode(second)))


def _sum(first: object, second: object) -> object:
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys((*first, *second))
        return {key: _sum(first.get(key), second.get(key)) for key in keys}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
