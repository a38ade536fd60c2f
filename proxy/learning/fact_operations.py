"""What a model is asked to answer about facts, and how its answer is read.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from proxy.chat.jsontext import well_formed
from proxy.learning.asking import json_in

Op = Literal["add", "update", "supersede", "none"]
OPS: tuple[Op, ...] = ("add", "update", "supersede", "none")

MOST = 50
"""Operations of one answer; who writes down more than that writes down everything."""

_TEXT = {"type": "string"}
_MAYBE_TEXT = {"type": ["string", "null"]}
_FIELDS: dict[str, Any] = {
    "op": {"type": "string", "enum": list(OPS)},
    "fact": {"type": ["integer", "null"]},
    "text": _TEXT,
    "about": _TEXT,
    "message": {"type": "integer"},
    "quote": _TEXT,
    "valid_from": _MAYBE_TEXT,
    "expires": _MAYBE_TEXT,
}

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "operations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _FIELDS,
                "required": list(_FIELDS),
                "additionalProperties": False,
            },
        }
    },
    "required": ["operations"],
    "additionalProperties": False,
}
"""JSON Schema of the answer, strict as upstreams want it: all required, nothing else."""


class Operation(NamedTuple):
    """One change that the model proposes.

    ``fact`` and ``message`` are the numbers that it was shown, from 1; 0 is none.  Dates as they
    were written.
    """

    op: Op
    text: str
    quote: str
    about: str = ""
    fact: int = 0
    message: int = 0
    valid_from: str = ""
    expires: str = ""


def operations_in(answer: str) -> tuple[Operation, ...] | None:
    """The operations of an answer; those that are none are left out.  None: it holds no list."""
    listed = _listed(json_in(answer, lambda value: _listed(value) is not None))
    return None if listed is None else tuple(_operations(listed))[:MOST]


def _listed(value: object) -> list[object] | None:
    """The list in a value, which may be a bare one."""
    if isinstance(value, dict):
        value = value.get("operations")
        return value if isinstance(value, list) else None
    bare = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value if isinstance(value, list) and bare else None


def _operations(listed: list[object]) -> Iterator[Operation]:
    for each in listed:
        if isinstance(each, dict) and each.get("op") in OPS:
            yield Operation(
                op=each["op"],
                text=_text(each.get("text")),
                quote=_text(each.get("quote")),
                about=_text(each.get("about")),
                fact=_number(each.get("fact")),
                message=_number(each.get("message")),
                valid_from=_text(each.get("valid_from")),
                expires=_text(each.get("expires")),
            )


def _text(value: object) -> str:
    return well_formed(value) if isinstance(value, str) else ""


def _number(value: object) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 6:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
