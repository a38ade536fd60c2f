"""Looking into JSON that others wrote: what is not as it should be counts as absent."""

from __future__ import annotations

from decimal import Decimal

from proxy.chat import jsontext
from proxy.portable.bounds import check_extent

Fields = dict[str, object]

FARTHEST = 1e11
"""Unix seconds; what is later is no time."""


def value_of(item: bytes, unreadable: str) -> object:
    """The value of a JSON text.  Raises ValueError: with ``unreadable`` where it is none."""
    check_extent(item)
    try:
        return jsontext.decode(item)
    except jsontext.UNREADABLE:
        raise ValueError(unreadable) from None


def text_in(fields: Fields, name: str) -> str:
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def fields_in(fields: Fields, name: str) -> Fields:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def list_in(fields: Fields, name: str) -> list[object]:
    found = fields.get(name)
    return found if isinstance(found, list) else []


def time_in(fields: Fields, name: str) -> float | None:
    """Unix seconds."""
    found = fields.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float | Decimal):
        return None
    return float(found) if 0 < found < FARTHEST else None
