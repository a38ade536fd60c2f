"""The time at which each part of a profile was last said: what was said later wins.  Pure.

Times are kept by path; an element of a list has its value in place of its index.  The time of a
person's own edit is that of the edit.
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
    apply_patch,
    join_pointer,
    member_at,
    split_pointer,
)
from proxy.learning.profile.statement import distinct_values, elements, key_of, operations_of


class AppliedStatement(NamedTuple):
    """A statement, the patch that it made, and the document after that."""

    statement: Statement
    patch: tuple[Operation, ...]
    document: Document


ApplyPatch = Callable[[Document, Sequence[Operation]], Document]
"""Applies a patch to a document.  Raises PatchError."""


def apply_statement(
    statement: Statement,
    document: Document,
    times: Mapping[str, float],
    apply: ApplyPatch = apply_patch,
) -> AppliedStatement:
    """Apply a statement; no change if the document has it already, or something later about it."""
    patch = tuple(operations_of(statement, document))
    if patch:
        now = apply(document, patch)
        made = replace(statement, operations=len(patch))
        later = paths_said_after(statement.source.at, times)
        if not overwrites(statement_paths(made, document), document, now, later):
            return AppliedStatement(made, patch, now)
    return AppliedStatement(replace(statement, operations=0), (), document)


class Step(NamedTuple):
    """An operation with the document before it, None if unknown, and after it."""

    operation: Operation
    was: Document | None
    now: Document


def steps(document: Document, patch: Sequence[Operation]) -> Iterator[Step]:
    """Apply the operations one after the other.  Raises PatchError."""
    for operation in patch:
        was, document = document, apply_patch(document, [operation])
        yield Step(operation, was, document)


def last_said_times(versions: Iterable[Version]) -> dict[str, float]:
    """The time (Unix seconds) at which each part of the document was last said, by path."""
    times: dict[str, float] = {}
    was: Document = {}
    for version in versions:
        note_version(times, version, was)
        was = version.document
    return times


def note_version(times: dict[str, float], version: Version, was: Document) -> None:
    """Add the times of what a version changes; ``was`` is the document before it."""
    known = was if version.before is None else None  # what that was made from is not kept
    learned = [source.at for source in version.sources if version.origin == "learned"]
    at = max(learned, default=version.created_at)
    for operation in version.shared_operations:
        _note_times(times, changed_paths(Step(operation, known, version.document)), at)
    for statement in version.said:
        note_statement(times, statement, known)
    for name, sources in (version.before or {}).items():
        _note_times(
            times, [join_pointer([name])], max((source.at for source in sources), default=0.0)
        )


def note_statement(times: dict[str, float], statement: Statement, was: Document | None) -> None:
    """Add the time of what a statement is about; ``was`` is the document before its version."""
    _note_times(times, statement_paths(statement, was), statement.source.at)


def _note_times(times: dict[str, float], paths: Iterable[str], at: float) -> None:
    for path in paths:
        times[path] = max(at, times.get(path, at))


def statement_paths(statement: Statement, was: Document | None) -> list[str]:
    """The paths that a statement is about: of a member, or of the values that it names in a list.

    A text that was removed as a whole counts as a member, however much of it was named.
    """
    path, values = statement.path, distinct_values(statement.value)
    member = member_at(split_pointer(path), was)
    one = statement.operations and member is not None and not isinstance(member, list)
    if statement.way == "set" or not values or (statement.way == "remove" and one):
        return [path]
    return [_place(path, key_of(each)) for each in values]


def changed_paths(step: Step) -> Iterator[str]:
    """The paths that an operation changes; in a list those of the values added or removed.

    Adding an empty list or object, for the next operation to fill, is no change, nor is making a
    list of the one value of a member.
    """
    for path in (str(step.operation[each]) for each in ("from", "path") if each in step.operation):
        holder = path.rpartition("/")[0]
        was, now = (member_at(split_pointer(holder), each) for each in (step.was, step.now))
        before, after = (member_at(split_pointer(path), each) for each in (step.was, step.now))
        if isinstance(was, list) or isinstance(now, list):
            yield from [holder] if step.was is None else _differences(holder, was, now)
        elif isinstance(before, list) and (step.operation["op"] == "remove" or not after):
            yield from _differences(path, before, after)
        elif step.operation["op"] != "add" or step.operation["value"] not in ([], {}, [before]):
            yield path


def _differences(path: str, was: Any, now: Any) -> Iterator[str]:
    """The path of each value that only one of two lists has."""
    for key in set(map(key_of, elements(was))) ^ set(map(key_of, elements(now))):
        yield _place(path, key)


def _place(path: str, key: bytes) -> str:
    return f"{path}{join_pointer([key.decode()])}"


def paths_said_after(at: float, times: Mapping[str, float]) -> list[list[str]]:
    """The paths, as names, of all parts that were said after ``at``."""
    return [split_pointer(path) for path, said in times.items() if said > at]


def overwrites(
    paths: Iterable[str], was: Document | None, now: Document, later: Sequence[Sequence[str]]
) -> bool:
    """Whether a change of these paths overwrites one of the paths said ``later``.

    That may be the changed path itself, one above it, or one below it that exists before or after
    the change.
    """
    return any(
        _affects(names, other, (was, now)) for names in map(split_pointer, paths) for other in later
    )


def _affects(
    names: Sequence[str], other: Sequence[str], documents: Sequence[Document | None]
) -> bool:
    if names[: len(other)] == other[: len(names)] and len(other) > len(names):
        return any(_has(member_at(names, each), other[len(names)]) for each in documents)
    return names[: len(other)] == other


def _has(member: Any, name: str) -> bool:
    """Whether a value has a member of this name, or an element with this key."""
    if isinstance(member, dict):
        return name in member
    return name in (key_of(each).decode() for each in elements(member))
