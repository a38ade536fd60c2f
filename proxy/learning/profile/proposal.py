"""Parses a model's proposal for a profile, in a form that small models can write.  Pure.

    {"set": [{"key": "home", "value": "Bonn", "quote": "I live in Bonn"}],
     "append": [{"key": "hobbies", "value": "chess", "quote": "I took up chess"}],
     "remove": [{"key": "hobbies", "value": "golf", "quote": "I gave up golf"}]}

A JSON Patch with quotes, which some models write instead, is read as well.  ``proposal_check``
checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from proxy.learning.extract import find_json
from proxy.learning.profile.document import MAX_OPERATIONS, Way

WAYS: tuple[Way, ...] = ("set", "append", "remove")

MAX_QUOTES = 50

_CHANGE = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("key", "value", "quote")},
    "required": ["key", "value", "quote"],
    "additionalProperties": False,
}

ANSWER_SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {way: {"type": "array", "items": _CHANGE} for way in WAYS},
    "required": list(WAYS),
    "additionalProperties": False,
}
"""JSON Schema of an answer about a document whose values are texts."""


class ProfileChange(NamedTuple):
    """One change that the model proposes.  ``value`` is a JSON value, None if there is none."""

    way: Way
    key: str
    value: Any
    quote: str


class ProposedPatch(msgspec.Struct, frozen=True):
    """A whole patch, unchecked, with the quotes that it is based on."""

    patch: list[Any]
    quotes: list[str]


Proposal = ProposedPatch | tuple[ProfileChange, ...]


def parse_proposal(answer: str) -> Proposal | None:
    """The proposal in an answer; None if it has none in a known form."""
    found = find_json(answer, _is_proposal)
    if isinstance(found, list):
        return ProposedPatch(found, [])
    if not isinstance(found, dict):
        return None
    if not any(way in found for way in WAYS):
        quotes = found.get("quotes")
        listed = quotes if isinstance(quotes, list) else []
        texts = [quote for quote in listed if isinstance(quote, str)]
        return ProposedPatch(found["patch"], texts[:MAX_QUOTES])
    changes = (change for way in WAYS for change in _changes(way, found.get(way)))
    return tuple(islice(changes, MAX_OPERATIONS))


def _is_proposal(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, dict) and "op" in each for each in value)
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("patch"), list) or any(
        isinstance(value.get(way), list | dict) for way in WAYS
    )


def _changes(way: Way, listed: object) -> Iterator[ProfileChange]:
    """The changes of one way: a list, or as small models write it an object by key."""
    if isinstance(listed, dict):
        named = ({"key": key, **each} for key, each in listed.items() if isinstance(each, dict))
        listed = list(named) if "key" not in listed else [listed]
    for each in listed if isinstance(listed, list) else []:
        key = each.get("key") if isinstance(each, dict) else None
        quote = each.get("quote") if isinstance(each, dict) else None
        if isinstance(key, str) and isinstance(quote, str):
            yield ProfileChange(way, key.strip(), each.get("value"), quote)
