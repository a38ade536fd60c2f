"""What of a model's proposal for a profile holds, as a JSON Patch.  Pure.

Each change stands for itself: one that cannot be used is left out, and the others are made.  A
JSON Patch is made as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from proxy.learning.evidence import OwnWords, Said, Source, is_instruction, source_of
from proxy.learning.facts.statements import may_be_from, may_be_of_kin
from proxy.learning.profile.document import (
    MOST_BYTES,
    MOST_OPERATIONS,
    Document,
    Operation,
    PatchError,
    Schema,
    Statement,
    applied,
    pointer,
)
from proxy.learning.profile.proposal import ProfileChange, Proposal, ProposedPatch
from proxy.learning.profile.rebase import PUTS
from proxy.learning.profile.statement import MOST_ALIKE, MOST_IDLE_BYTES, is_nothing, named_in
from proxy.learning.profile.times import changed, entered, later_than, overwrites, steps

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

MOST_STATEMENTS = 3 * MOST_OPERATIONS
"""Values of one answer that are looked at."""

MOST_PATCH = 4 * MOST_BYTES
"""Bytes of a patch: more than a whole document needs."""

_DEEPEST = 4
"""Names in a key."""


class Grounds(NamedTuple):
    """What a proposal is judged by: what was said, the schema, and when what the document has was
    said, by path (Unix seconds)."""

    said: Sequence[Said]
    schema: Schema
    times: Mapping[str, float]


class Agreed(NamedTuple):
    """What comes of a proposal: the patch, the document after it, and what was said for that.

    ``sources`` are the messages of a patch that was proposed as a whole.
    """

    patch: tuple[Operation, ...]
    document: Document
    sources: tuple[Source, ...] = ()
    said: tuple[Statement, ...] = ()


def agreed(proposal: Proposal, document: Document, grounds: Grounds) -> Agreed:
    """What of a proposal holds.  Raises PatchError where nothing does that was proposed.

    It is taken in the order in which it was said.
    """
    if isinstance(proposal, ProposedPatch):
        return _whole(proposal, document, grounds)
    told, wrong = _told(proposal, grounds)
    done = Agreed((), document)
    for change, source in islice(told, MOST_STATEMENTS):
        try:
            done = _with(done, change, source, grounds)
        except PatchError as error:
            wrong = wrong or error
    if wrong is not None and not done.said:
        raise wrong
    return done


def _told(
    changes: Sequence[ProfileChange], grounds: Grounds
) -> tuple[list[tuple[ProfileChange, Source]], PatchError | None]:
    """The changes, a value each, with the messages that they are from, in the order of these, and
    what is wrong with the first that is from none."""
    found: list[tuple[float, int, ProfileChange]] = []
    wrong: PatchError | None = None
    said, own = grounds.said, OwnWords(grounds.said)
    quoted = ((change, own.places(change.quote)) for change in changes)
    each_alone = ((one, places) for change, places in quoted for one in _values_of(change))
    for change, places in islice(each_alone, MOST_STATEMENTS):
        told = [place for place in places if _is_told(change, said[place].own, grounds.schema)]
        found += ((said[place].at, place, change) for place in _naming(change, told, said))
        if not told:
            wrong = wrong or _not_said(change.value if places else change.quote)
    found.sort(key=lambda each: each[:2])
    return [(change, source_of(said[place])) for _, place, change in found], wrong


def _is_told(change: ProfileChange, text: str, schema: Schema) -> bool:
    """Has a text any word of the value, or is it the schema's, or both of the family?  What is to
    go may be anything, and what is too long is told so later."""
    value = " ".join(_texts(change.value))
    anything = change.way == "remove" or len(value) > MOST_PATCH
    told = may_be_from(value, text, schema.text or "") or may_be_of_kin(value, text)
    return anything or told


def _values_of(change: ProfileChange) -> Iterator[ProfileChange]:
    """The changes of a list, a value each: of one something may have been said later."""
    if change.way == "set" or not isinstance(change.value, list) or not named_in(change.value):
        yield change
        return
    for value in named_in(change.value):
        yield change._replace(value=value)


def _not_said(words: object) -> PatchError:
    return PatchError(f"these are not the person's own words: {str(words)[:100]!r}")


def _naming(change: ProfileChange, places: list[int], said: Sequence[Said]) -> list[int]:
    """Of the messages that have the words those that name the value, if there are any; the last."""
    texts = [each.casefold() for each in named_in(change.value) if isinstance(each, str)]
    naming = [x for x in places if any(text in said[x].own.casefold() for text in texts)]
    return (naming or places)[-MOST_ALIKE:]


def _with(done: Agreed, change: ProfileChange, source: Source, grounds: Grounds) -> Agreed:
    """What is agreed once a change was looked at that somebody has said.  Raises PatchError."""
    if len(done.patch) >= MOST_OPERATIONS:
        raise PatchError(f"more than {MOST_OPERATIONS} operations")
    statement = _stated(change, source, done.document)

    def carried(document: Document, patch: Sequence[Operation]) -> Document:
        return _after(document, patch, grounds.schema)

    made = entered(statement, done.document, grounds.times, carried)
    if not made.patch and not _is_worth(statement):
        return done
    return Agreed((*done.patch, *made.patch), made.document, said=(*done.said, made.statement))


def _stated(change: ProfileChange, source: Source, document: Document) -> Statement:
    """What was said, as JSON has it.  Raises PatchError, as ``_readable``; what is to go may be
    anything."""
    value = _as_json(named_in(change.value) if change.way == "append" else change.value)
    path = pointer(_names_of(change.key, document))
    _readable([{"path": path, "value": None if change.way == "remove" else value}])
    return Statement(way=change.way, path=path, value=value, source=source)


def _is_worth(statement: Statement) -> bool:
    """Is it to be kept though nothing comes of it?"""
    size = len(msgspec.json.encode(statement))
    tells = statement.way == "remove" or not is_nothing(statement.value)
    return tells and size <= MOST_IDLE_BYTES


def _whole(proposal: ProposedPatch, document: Document, grounds: Grounds) -> Agreed:
    """A patch as a whole, or an error; what older words would write over is left out.

    It does not say what is from which of its words: it counts as said with the first of them where
    it would write over something, and with the last where something would write over it.
    """
    if not proposal.patch:
        return Agreed((), document)
    patch = _readable(proposal.patch)
    own = OwnWords(grounds.said)
    sources = tuple(dict.fromkeys(_source(quote, own, grounds.said) for quote in proposal.quotes))
    _after(document, patch, grounds.schema)
    if not sources:
        raise PatchError('"quotes" must have the words of the person that the patch is from')
    _check_told(patch, grounds)
    later = later_than(min(source.at for source in sources), grounds.times)
    patch = tuple(
        step.operation
        for step in steps(document, patch)
        if not overwrites(changed(step), step.was, step.now, later)
    )
    return Agreed(patch, _after(document, patch, grounds.schema), sources)


def _check_told(patch: Sequence[Operation], grounds: Grounds) -> None:
    """Raise PatchError for a value no word of which is in any of the messages."""
    text = "\n".join(each.own for each in grounds.said)
    for value in (each.get("value") for each in patch if each["op"] in PUTS):
        if not _is_told(ProfileChange("set", "", value, ""), text, grounds.schema):
            raise _not_said(value)


def _source(quote: str, own: OwnWords, said: Sequence[Said]) -> Source:
    """The first message with these words of the user's own.  Raises PatchError."""
    places = own.places(quote)
    if not places:
        raise _not_said(quote)
    return source_of(said[places[0]])


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
        read = msgspec.convert(_as_json(patch), tuple[Operation, ...])
    except msgspec.ValidationError as error:
        raise PatchError(f"the patch is not valid: {error}") from None
    if any(map(is_instruction, _texts([[each.get("path"), each.get("value")] for each in read]))):
        raise PatchError("instructions to an assistant are no facts about a person")
    return read


def _as_json(value: object) -> Any:
    """What JSON has of a value, which is not too much.  Raises PatchError."""
    try:
        encoded = msgspec.json.encode(value)
        read = msgspec.json.decode(encoded)
    except (ValueError, RecursionError) as error:
        raise PatchError(f"the patch is not valid: {error}") from None
    if len(encoded) > MOST_PATCH:
        raise PatchError(f"the patch has more than {MOST_PATCH} bytes")
    return read


def _texts(value: object) -> Iterator[str]:
    """All texts in a value, names of members included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))
    elif isinstance(value, dict):
        yield from chain(value, chain.from_iterable(map(_texts, value.values())))


def _names_of(key: str, document: Document) -> list[str]:
    """The names of a member: the key itself, or a way to it with dots or slashes."""
    if not key.strip("./ "):
        raise PatchError('"key" must name what is changed')
    if key in document:
        return [key]
    names = key.strip("./").replace("/", ".").split(".")
    return names[:_DEEPEST]
