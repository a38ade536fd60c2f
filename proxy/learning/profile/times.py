"""When what a profile has, or has no more, was said last: what was said later wins.  Pure.

An element of a list goes by its value.  What a person changed by hand was said when they did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from proxy.learning.profile.document import (
    Document,
    Operation,
    Statement,
    Version,
    applied,
    inner_at,
    pointer,
    tokens,
)
from proxy.learning.profile.statement import elements, key_of, named_in, operations_of


class Entered(NamedTuple):
    """A statement, what came of it, and the document after that."""

    statement: Statement
    patch: tuple[Operation, ...]
    document: Document


Carry = Callable[[Document, Sequence[Operation]], Document]
"""Carries a patch out.  Raises PatchError."""


def entered(
    statement: Statement, document: Document, times: Mapping[str, float], carry: Carry = applied
) -> Entered:
    """What comes of a statement: nothing where it is so already, or something was said later."""
    patch = tuple(operations_of(statement, document))
    if patch:
        now = carry(document, patch)
        made = replace(statement, operations=len(patch))
        later = later_than(statement.source.at, times)
        if not overwrites(places(made, document), document, now, later):
            return Entered(made, patch, now)
    return Entered(replace(statement, operations=0), (), document)


class Step(NamedTuple):
    """An operation, with what it was carried out on, None if that is not known, and what came of
    it."""

    operation: Operation
    was: Document | None
    now: Document


def steps(document: Document, patch: Sequence[Operation]) -> Iterator[Step]:
    """The operations, carried out one after the other.  Raises PatchError."""
    for operation in patch:
        was, document = document, applied(document, [operation])
        yield Step(operation, was, document)


def told_at(versions: Iterable[Version]) -> dict[str, float]:
    """When each part of a document was said last, by path (Unix seconds)."""
    times: dict[str, float] = {}
    was: Document = {}
    for version in versions:
        note_version(times, version, was)
        was = version.document
    return times


def note_version(times: dict[str, float], version: Version, was: Document) -> None:
    """Note when what a version changes was said; ``was`` is the document before it."""
    known = was if version.before is None else None  # what that was made from is not kept
    learned = [source.at for source in version.sources if version.origin == "learned"]
    at = max(learned, default=version.created_at)
    for operation in version.whole:
        _note(times, changed(Step(operation, known, version.document)), at)
    for statement in version.said:
        note_statement(times, statement, known)
    for name, sources in (version.before or {}).items():
        _note(times, [pointer([name])], max((source.at for source in sources), default=0.0))


def note_statement(times: dict[str, float], statement: Statement, was: Document | None) -> None:
    """Note when what a statement is about was said; ``was`` is the document before its version."""
    _note(times, places(statement, was), statement.source.at)


def _note(times: dict[str, float], paths: Iterable[str], at: float) -> None:
    for path in paths:
        times[path] = max(at, times.get(path, at))


def places(statement: Statement, was: Document | None) -> list[str]:
    """What a statement is about: a member, or of a list the values that it names.

    Of a text that was taken away as a whole, it does not matter how much of it was named.
    """
    path, values = statement.path, named_in(statement.value)
    held = inner_at(tokens(path), was)
    one = statement.operations and held is not None and not isinstance(held, list)
    if statement.way == "set" or not values or (statement.way == "remove" and one):
        return [path]
    return [_place(path, key_of(each)) for each in values]


def changed(step: Step) -> Iterator[str]:
    """The paths that an operation changes; of a list that it changes or removes those of the values
    that come or go.

    To add an empty list or object, into which something is put next, is no change, nor is to make a
    list of the one value that is there.
    """
    for path in (str(step.operation[each]) for each in ("from", "path") if each in step.operation):
        holder = path.rpartition("/")[0]
        was, now = (inner_at(tokens(holder), each) for each in (step.was, step.now))
        before, after = (inner_at(tokens(path), each) for each in (step.was, step.now))
        if isinstance(was, list) or isinstance(now, list):
            yield from [holder] if step.was is None else _differences(holder, was, now)
        elif isinstance(before, list) and (step.operation["op"] == "remove" or not after):
            yield from _differences(path, before, after)
        elif step.operation["op"] != "add" or step.operation["value"] not in ([], {}, [before]):
            yield path


def _differences(path: str, was: Any, now: Any) -> Iterator[str]:
    """Each value that only one of two lists has, as a place in the list."""
    for key in set(map(key_of, elements(was))) ^ set(map(key_of, elements(now))):
        yield _place(path, key)


def _place(path: str, key: bytes) -> str:
    return f"{path}{pointer([key.decode()])}"


def later_than(at: float, times: Mapping[str, float]) -> list[list[str]]:
    """The places of which something was said after that, as names."""
    return [tokens(path) for path, said in times.items() if said > at]


def overwrites(
    paths: Iterable[str], was: Document | None, now: Document, later: Sequence[Sequence[str]]
) -> bool:
    """Is something said ``later`` written over where a document becomes what it is now?

    That may be what is changed, what that is in, or what is in that: there so far, or put there
    though it was taken away.
    """
    return any(_meets(names, other, (was, now)) for names in map(tokens, paths) for other in later)


def _meets(
    names: Sequence[str], other: Sequence[str], documents: Sequence[Document | None]
) -> bool:
    if names[: len(other)] == other[: len(names)] and len(other) > len(names):
        return any(_has(inner_at(names, each), other[len(names)]) for each in documents)
    return names[: len(other)] == other


def _has(held: Any, name: str) -> bool:
    """Has a value a member of this name, or an element with this key?"""
    if isinstance(held, dict):
        return name in held
    return name in (key_of(each).decode() for each in elements(held))
