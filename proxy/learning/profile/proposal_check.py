"""Checks a model's proposal for a profile, and makes a JSON Patch of what is accepted.  Pure.

Each change is checked by itself, and left out if it is not valid.  A proposed JSON Patch is
accepted as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec

from proxy.learning.evidence import OwnWords, Source, UserMessage, is_instruction, source_of
from proxy.learning.facts.statements import may_be_from, may_name_family
from proxy.learning.profile.document import (
    MAX_BYTES,
    MAX_OPERATIONS,
    Document,
    Operation,
    PatchError,
    Schema,
    Statement,
    apply_patch,
    join_pointer,
)
from proxy.learning.profile.proposal import ProfileChange, Proposal, ProposedPatch
from proxy.learning.profile.rebase import PUT_OPERATIONS
from proxy.learning.profile.statement import MAX_IDLE_BYTES, MAX_REPEATS, distinct_values, is_empty
from proxy.learning.profile.times import (
    apply_statement,
    changed_paths,
    overwrites,
    paths_said_after,
    steps,
)

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
"""The keys of a document without a schema; it may have one more, of the application's own."""

MAX_KEYS = 12

MAX_STATEMENTS = 3 * MAX_OPERATIONS
"""Values of one answer that are checked."""

MAX_PATCH_BYTES = 4 * MAX_BYTES
"""Bytes of a patch: more than a whole document needs."""

_MAX_KEY_NAMES = 4
"""The most names in a key with dots."""


class ReviewContext(NamedTuple):
    """What a proposal is checked against: the messages, the schema, and the time at which each part
    of the document was last said, by path (Unix seconds)."""

    messages: Sequence[UserMessage]
    schema: Schema
    times: Mapping[str, float]


class AcceptedPatch(NamedTuple):
    """The accepted part of a proposal: the patch, the document after it, and its statements.

    ``sources`` are the messages of a proposed JSON Patch, which has no statements.
    """

    patch: tuple[Operation, ...]
    document: Document
    sources: tuple[Source, ...] = ()
    statements: tuple[Statement, ...] = ()


def accept_proposal(
    proposal: Proposal, document: Document, context: ReviewContext
) -> AcceptedPatch:
    """The accepted part of a proposal, in the order of its messages.  Raises PatchError if nothing
    that was proposed is accepted."""
    if isinstance(proposal, ProposedPatch):
        return _accept_patch(proposal, document, context)
    changes, wrong = _with_sources(proposal, context)
    done = AcceptedPatch((), document)
    for change, source in islice(changes, MAX_STATEMENTS):
        try:
            done = _apply_change(done, change, source, context)
        except PatchError as error:
            wrong = wrong or error
    if wrong is not None and not done.statements:
        raise wrong
    return done


def _with_sources(
    changes: Sequence[ProfileChange], context: ReviewContext
) -> tuple[list[tuple[ProfileChange, Source]], PatchError | None]:
    """The changes, one for each value, with their source messages and in the order of these; and
    the error of the first without a source."""
    found: list[tuple[float, int, ProfileChange]] = []
    wrong: PatchError | None = None
    messages, own = context.messages, OwnWords(context.messages)
    quoted = ((change, own.places(change.quote)) for change in changes)
    each_alone = ((one, places) for change, places in quoted for one in _split_values(change))
    for change, places in islice(each_alone, MAX_STATEMENTS):
        supported = [
            place
            for place in places
            if _is_supported(change, messages[place].own_text, context.schema)
        ]
        found += (
            (messages[place].at, place, change)
            for place in _best_sources(change, supported, messages)
        )
        if not supported:
            wrong = wrong or _unsupported(change.value if places else change.quote)
    found.sort(key=lambda each: each[:2])
    return [(change, source_of(messages[place])) for _, place, change in found], wrong


def _is_supported(change: ProfileChange, text: str, schema: Schema) -> bool:
    """Whether the value can follow from a text: by a word in it or in the schema, or if both are
    about the family.  Removals are not checked, nor is what is too long, which fails later."""
    value = " ".join(_texts(change.value))
    anything = change.way == "remove" or len(value) > MAX_PATCH_BYTES
    supported = may_be_from(value, text, schema.text or "") or may_name_family(value, text)
    return anything or supported


def _split_values(change: ProfileChange) -> Iterator[ProfileChange]:
    """The change, or for a list one for each value, since each has its own time."""
    if (
        change.way == "set"
        or not isinstance(change.value, list)
        or not distinct_values(change.value)
    ):
        yield change
        return
    for value in distinct_values(change.value):
        yield change._replace(value=value)


def _unsupported(words: object) -> PatchError:
    return PatchError(f"these are not the person's own words: {str(words)[:100]!r}")


def _best_sources(
    change: ProfileChange, places: list[int], messages: Sequence[UserMessage]
) -> list[int]:
    """The last of the messages that name the value, or if none does of all these."""
    texts = [each.casefold() for each in distinct_values(change.value) if isinstance(each, str)]
    naming = [x for x in places if any(text in messages[x].own_text.casefold() for text in texts)]
    return (naming or places)[-MAX_REPEATS:]


def _apply_change(
    done: AcceptedPatch, change: ProfileChange, source: Source, context: ReviewContext
) -> AcceptedPatch:
    """``done`` with one more change applied.  Raises PatchError."""
    if len(done.patch) >= MAX_OPERATIONS:
        raise PatchError(f"more than {MAX_OPERATIONS} operations")
    statement = _statement_of(change, source, done.document)
    apply = partial(_apply_checked, schema=context.schema)
    made = apply_statement(statement, done.document, context.times, apply)
    if not made.patch and not _is_worth_keeping(statement):
        return done
    return AcceptedPatch(
        (*done.patch, *made.patch), made.document, statements=(*done.statements, made.statement)
    )


def _statement_of(change: ProfileChange, source: Source, document: Document) -> Statement:
    """The change as a statement.  Raises PatchError, as ``_validated``, but not for the value of a
    removal."""
    value = _as_json(distinct_values(change.value) if change.way == "append" else change.value)
    path = join_pointer(_names_of(change.key, document))
    _validated([{"path": path, "value": None if change.way == "remove" else value}])
    return Statement(way=change.way, path=path, value=value, source=source)


def _is_worth_keeping(statement: Statement) -> bool:
    """Whether a statement without effect is kept."""
    size = len(msgspec.json.encode(statement))
    tells = statement.way == "remove" or not is_empty(statement.value)
    return tells and size <= MAX_IDLE_BYTES


def _accept_patch(
    proposal: ProposedPatch, document: Document, context: ReviewContext
) -> AcceptedPatch:
    """Accept a JSON Patch as a whole, without operations that overwrite what was said later.

    Which operation is from which quote is unknown.  So its time is that of the first quote where it
    would overwrite something, and of the last where something would overwrite it.
    """
    if not proposal.patch:
        return AcceptedPatch((), document)
    patch = _validated(proposal.patch)
    own = OwnWords(context.messages)
    sources = tuple(
        dict.fromkeys(_source(quote, own, context.messages) for quote in proposal.quotes)
    )
    _apply_checked(document, patch, context.schema)
    if not sources:
        raise PatchError('"quotes" must have the words of the person that the patch is from')
    _check_supported(patch, context)
    later = paths_said_after(min(source.at for source in sources), context.times)
    patch = tuple(
        step.operation
        for step in steps(document, patch)
        if not overwrites(changed_paths(step), step.was, step.now, later)
    )
    return AcceptedPatch(patch, _apply_checked(document, patch, context.schema), sources)


def _check_supported(patch: Sequence[Operation], context: ReviewContext) -> None:
    """Raise PatchError for a value that cannot follow from any of the messages."""
    text = "\n".join(each.own_text for each in context.messages)
    for value in (each.get("value") for each in patch if each["op"] in PUT_OPERATIONS):
        if not _is_supported(ProfileChange("set", "", value, ""), text, context.schema):
            raise _unsupported(value)


def _source(quote: str, own: OwnWords, messages: Sequence[UserMessage]) -> Source:
    """The first message that has the quote as the user's own text.  Raises PatchError."""
    places = own.places(quote)
    if not places:
        raise _unsupported(quote)
    return source_of(messages[places[0]])


def _apply_checked(document: Document, patch: Sequence[Operation], schema: Schema) -> Document:
    """The document after a patch.  Raises PatchError if the schema forbids it, or without a schema
    if it has too many keys."""
    after = apply_patch(document, patch)
    schema.check(document, after)
    if schema.text is None and len(after) > max(MAX_KEYS, len(document)):
        raise PatchError(f"at most {MAX_KEYS} keys: use those there are, or {', '.join(KEYS)}")
    return after


def _validated(patch: object) -> tuple[Operation, ...]:
    """The patch with JSON values only.  Raises PatchError for other values, and for instructions,
    which would get into prompts."""
    try:
        read = msgspec.convert(_as_json(patch), tuple[Operation, ...])
    except msgspec.ValidationError as error:
        raise PatchError(f"the patch is not valid: {error}") from None
    if any(map(is_instruction, _texts([[each.get("path"), each.get("value")] for each in read]))):
        raise PatchError("instructions to an assistant are no facts about a person")
    return read


def _as_json(value: object) -> Any:
    """A value after encoding and decoding.  Raises PatchError if that fails or it is too long."""
    try:
        encoded = msgspec.json.encode(value)
        read = msgspec.json.decode(encoded)
    except (ValueError, RecursionError) as error:
        raise PatchError(f"the patch is not valid: {error}") from None
    if len(encoded) > MAX_PATCH_BYTES:
        raise PatchError(f"the patch has more than {MAX_PATCH_BYTES} bytes")
    return read


def _texts(value: object) -> Iterator[str]:
    """All strings in a value, with the names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))
    elif isinstance(value, dict):
        yield from chain(value, chain.from_iterable(map(_texts, value.values())))


def _names_of(key: str, document: Document) -> list[str]:
    """The names on the path of a key, which may have dots or slashes."""
    if not key.strip("./ "):
        raise PatchError('"key" must name what is changed')
    if key in document:
        return [key]
    names = key.strip("./").replace("/", ".").split(".")
    return names[:_MAX_KEY_NAMES]
