"""What a model proposes for a profile, in a form that a small one can hit, as a JSON Patch.  Pure.

    {"set": [{"key": "home", "value": "Bonn", "quote": "I live in Bonn"}],
     "append": [{"key": "hobbies", "value": "chess", "quote": "I took up chess"}],
     "remove": [{"key": "hobbies", "value": "golf", "quote": "I gave up golf"}]}

Each change stands for itself: one that cannot be used is left out, and the others are made.  A JSON
Patch with quotes, as older prompts asked for, is read as well, and made as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec

from proxy.chat.jsontext import canonical
from proxy.learning.evidence import Said, Source, evidence, is_instruction, source_of
from proxy.learning.extract import json_in
from proxy.learning.profile.document import (
    MOST_BYTES,
    MOST_OPERATIONS,
    Document,
    Operation,
    PatchError,
    Schema,
    Version,
    applied,
    pointer,
    same,
    tokens,
)

Way = Literal["set", "append", "remove"]
WAYS: tuple[Way, ...] = ("set", "append", "remove")

KEYS = (
    "name",
    "family",
    "friends",
    "work",
    "home",
    "sports",
    "hobbies",
    "goals",
    "values",
    "health",
    "history",
)
"""Of a document without a schema; it may have one more, of the application's own."""

MOST_KEYS = 12

MOST_QUOTES = 50

MOST_PATCH = 4 * MOST_BYTES
"""Bytes of a patch: more than a whole document needs."""

_END = "/-"
"""How a path ends by which a list grows."""

_DEEPEST = 4
"""Names in a key."""

_CHANGE = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("key", "value", "quote")},
    "required": ["key", "value", "quote"],
    "additionalProperties": False,
}

FORM: Mapping[str, object] = {
    "type": "object",
    "properties": {way: {"type": "array", "items": _CHANGE} for way in WAYS},
    "required": list(WAYS),
    "additionalProperties": False,
}
"""JSON Schema of an answer about a document whose values are texts."""


class ProfileChange(NamedTuple):
    """One change that the model proposes.  ``value`` is a JSON value, None where there is none."""

    way: Way
    key: str
    value: Any
    quote: str


class ProposedPatch(msgspec.Struct, frozen=True):
    """A patch as a whole, unchecked, and the words that it is from."""

    patch: list[Any]
    quotes: list[str]


Proposal = ProposedPatch | tuple[ProfileChange, ...]


def proposal_in(answer: str) -> Proposal | None:
    """What an answer proposes, None if it proposes nothing in any form that was asked for."""
    found = json_in(answer, _is_proposal)
    if isinstance(found, list):
        return ProposedPatch(found, [])
    if not isinstance(found, dict):
        return None
    if not any(way in found for way in WAYS):
        quotes = found.get("quotes")
        listed = quotes if isinstance(quotes, list) else []
        texts = [quote for quote in listed if isinstance(quote, str)]
        return ProposedPatch(found["patch"], texts[:MOST_QUOTES])
    changes = (change for way in WAYS for change in _changes(way, found.get(way)))
    return tuple(change for change, _ in zip(changes, range(MOST_OPERATIONS), strict=False))


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


class Grounds(NamedTuple):
    """What a proposal is judged by: what was said, the schema, and when what the document has was
    said, by path (Unix seconds)."""

    said: Sequence[Said]
    schema: Schema
    times: Mapping[str, float]


class Agreed(NamedTuple):
    """What comes of a proposal: the patch, the document after it, and the messages it is from."""

    patch: tuple[Operation, ...]
    document: Document
    sources: tuple[Source, ...]


def agreed(proposal: Proposal, document: Document, grounds: Grounds) -> Agreed:
    """What of a proposal holds.  Raises PatchError where nothing does that was proposed."""
    if isinstance(proposal, ProposedPatch):
        return _whole(proposal, document, grounds)
    patch: list[Operation] = []
    sources: dict[Source, None] = {}
    wrong: PatchError | None = None
    for change in proposal:
        try:
            source = _source(change.quote, grounds.said)
            operations = _made(change, document)
            steps = _steps(document, operations)
            if any(_is_older(step, source.at, grounds.times) for step in steps):
                continue
            after = _after(document, operations, grounds.schema)
        except PatchError as error:
            wrong = wrong or error
            continue
        if operations:
            patch, document, sources = [*patch, *operations], after, {**sources, source: None}
    if wrong is not None and not patch:
        raise wrong
    return Agreed(tuple(patch), document, tuple(sources))


def _whole(proposal: ProposedPatch, document: Document, grounds: Grounds) -> Agreed:
    """A patch as a whole, or an error; what older words would write over is left out."""
    if not proposal.patch:
        return Agreed((), document, ())
    patch = _readable(proposal.patch)
    sources = tuple(dict.fromkeys(_source(quote, grounds.said) for quote in proposal.quotes))
    _after(document, patch, grounds.schema)
    if not sources:
        raise PatchError('"quotes" must have the words of the person that the patch is from')
    at = min(source.at for source in sources)
    steps = _steps(document, patch)
    patch = tuple(step.operation for step in steps if not _is_older(step, at, grounds.times))
    return Agreed(patch, _after(document, patch, grounds.schema), sources)


def _source(quote: str, said: Sequence[Said]) -> Source:
    """The message with these words of the user's own.  Raises PatchError."""
    there = evidence(quote, said)
    if there is None or there.voice != "own":
        raise PatchError(f"these are not the person's own words: {quote[:100]!r}")
    return source_of(there.said)


def _after(document: Document, patch: Sequence[Operation], schema: Schema) -> Document:
    """The document after a patch, if the schema allows it, or, without one, the number of names."""
    after = applied(document, patch)
    schema.check(document, after)
    if schema.text is None and len(after) > max(MOST_KEYS, len(document)):
        raise PatchError(f"at most {MOST_KEYS} keys: use those there are, or {', '.join(KEYS)}")
    return after


def _readable(patch: object) -> tuple[Operation, ...]:
    """The patch as JSON has it.

    Raises PatchError for what JSON has not, and for instructions that would stand in prompts.
    """
    try:
        encoded = msgspec.json.encode(patch)
        read = msgspec.json.decode(encoded, type=tuple[Operation, ...])
    except (ValueError, RecursionError) as error:
        raise PatchError(f"the patch is not valid: {error}") from None
    if len(encoded) > MOST_PATCH:
        raise PatchError(f"the patch has more than {MOST_PATCH} bytes")
    if any(map(is_instruction, _texts([[each.get("path"), each.get("value")] for each in read]))):
        raise PatchError("instructions to an assistant are no facts about a person")
    return read


def _texts(value: object) -> Iterator[str]:
    """All texts in a value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))
    elif isinstance(value, dict):
        yield from chain(value, chain.from_iterable(map(_texts, value.values())))


# From a change to operations


def _made(change: ProfileChange, document: Document) -> tuple[Operation, ...]:
    """The JSON Patch of one change; empty where the document is so already.  Raises PatchError."""
    names = _names_of(change.key, document)
    held = _at(names, document)
    ways = {"set": _set, "append": _append, "remove": _remove}
    made = ways[change.way](pointer(names), held, change.value)
    if made and change.way != "remove":
        made = [*_holders(names, document), *made]
    return _readable(made)


def _names_of(key: str, document: Document) -> list[str]:
    """The names of a member: the key itself, or a way to it with dots or slashes."""
    if not key.strip("./ "):
        raise PatchError('"key" must name what is changed')
    if key in document:
        return [key]
    names = key.strip("./").replace("/", ".").split(".")
    return names[:_DEEPEST]


def _at(names: Sequence[str], value: Any) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _holders(names: Sequence[str], document: Document) -> Iterator[Operation]:
    """What adds the objects that hold a member, where there are none yet."""
    for size in range(1, len(names)):
        if _at(names[:size], document) is None:
            yield {"op": "add", "path": pointer(names[:size]), "value": {}}


def _set(path: str, held: Any, value: Any) -> list[Operation]:
    if value in (None, "", []) or (held is not None and same(held, value)):
        return []
    return [{"op": "replace" if held is not None else "add", "path": path, "value": value}]


def _append(path: str, held: Any, value: Any) -> list[Operation]:
    """A member that is no list yet becomes one; what is in it already is not added."""
    values = [each for each in (value if isinstance(value, list) else [value]) if each]
    there = _elements(held)
    known, named = set(map(_key, there)), dict[bytes, Any]()
    for each in values:
        named.setdefault(_key(each), each)
    new = [each for key, each in named.items() if key not in known]
    if not new:
        return []
    if len(new) > MOST_OPERATIONS:
        raise PatchError(f"more than {MOST_OPERATIONS} operations")
    grown = [{"op": "add", "path": f"{path}{_END}", "value": each} for each in new]
    if isinstance(held, list):
        return grown
    return [{"op": "add", "path": path, "value": there}, *grown]


def _elements(held: Any) -> list[Any]:
    """The elements of a list; what is none is one, or nothing."""
    return held if isinstance(held, list) else [held] if held not in (None, "") else []


def _remove(path: str, held: Any, value: Any) -> list[Operation]:
    """A member, or of a list, where a value is named, this element of it.

    A text that does not have what is named stays: "moved from Bonn to Berlin" takes Bonn away
    where Berlin stands already.
    """
    if held is None or (isinstance(held, str) and not _has(held, value)):
        return []
    if isinstance(held, list) and value not in (None, "", []):
        key = _key(value)
        gone = [i for i, each in enumerate(held) if _key(each) == key]
        if len(gone) < len(held):
            return [{"op": "remove", "path": f"{path}/{i}"} for i in reversed(gone)]
    return [{"op": "remove", "path": path}]


def _has(held: str, value: Any) -> bool:
    """Whether a text has some of what is named, or is part of it; so it does where nothing is."""
    named = [each for each in (value if isinstance(value, list) else [value]) if each]
    texts = [each.strip().casefold() for each in named if isinstance(each, str)]
    one = held.casefold()
    return not texts or any(one in each or each in one for each in texts)


def _key(value: Any) -> bytes:
    """What two elements of a list are the same by: case does not count."""
    return canonical(value.strip().casefold() if isinstance(value, str) else value)


# What was said later wins


class _Step(NamedTuple):
    """An operation, with what it was carried out on, None if that is not known, and what came of
    it."""

    operation: Operation
    was: Document | None
    now: Document


def _steps(document: Document, patch: Sequence[Operation]) -> Iterator[_Step]:
    """The operations, carried out one after the other.  Raises PatchError."""
    for operation in patch:
        was, document = document, applied(document, [operation])
        yield _Step(operation, was, document)


def told_at(versions: Sequence[Version]) -> dict[str, float]:
    """When what a profile has, or has no more, was said last, by path (Unix seconds).

    An element of a list goes by its value.  What a person changed by hand was said when they did.
    """
    times: dict[str, float] = {}
    was: Document | None = {}
    for version in versions:
        learned = [source.at for source in version.sources if version.origin == "learned"]
        at = max(learned, default=version.created_at)
        if version.before is not None:  # what it was made from is not kept
            was = None
        for operation in version.patch:
            for path in _changed(_Step(operation, was, version.document)):
                times[path] = max(at, times.get(path, at))
        for name, sources in (version.before or {}).items():
            path = pointer([name])
            times[path] = max([times.get(path, 0.0), *(source.at for source in sources)])
        was = version.document
    return times


def _changed(step: _Step) -> Iterator[str]:
    """The places that an operation changes; of a list that it changes, or that is gone, the values
    that it has more or less.

    A place for what follows is no change.
    """
    for path in (str(step.operation[each]) for each in ("from", "path") if each in step.operation):
        holder = path.rpartition("/")[0]
        was, now = (_at(tokens(holder), each) for each in (step.was, step.now))
        before, after = (_at(tokens(path), each) for each in (step.was, step.now))
        if isinstance(was, list) or isinstance(now, list):
            yield from [holder] if step.was is None else _differences(holder, was, now)
        elif isinstance(before, list) and (step.operation["op"] == "remove" or not after):
            yield from _differences(path, before, after)
        elif step.operation["op"] != "add" or step.operation["value"] not in ([], {}, [before]):
            yield path


def _differences(path: str, was: Any, now: Any) -> Iterator[str]:
    """Each value that only one of two lists has, as a place in the list."""
    for key in set(map(_key, _elements(was))) ^ set(map(_key, _elements(now))):
        yield f"{path}{pointer([key.decode()])}"


def _is_older(step: _Step, at: float, times: Mapping[str, float]) -> bool:
    """Would what was said then be written over something that was said later?

    That may be what it changes, what is in that, or what that is in.
    """
    for names in map(tokens, _changed(step)):
        for other, said in times.items():
            theirs = tokens(other) if said > at else None
            if theirs is not None and names[: len(theirs)] == theirs[: len(names)]:
                return True
    return False
