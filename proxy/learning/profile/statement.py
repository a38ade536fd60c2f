"""Statements about one member of a profile, and the operations that they make.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from proxy.chat.jsontext import canonical
from proxy.learning.profile.document import (
    MAX_OPERATIONS,
    Document,
    Operation,
    PatchError,
    Statement,
    Version,
    equal_json,
    join_pointer,
    member_at,
    split_pointer,
)

MAX_IDLE = 40
"""Idle statements of a version, which changed nothing; of more the oldest are dropped."""

MAX_REPEATS = 3
"""Idle statements of a version that say the same."""

MAX_IDLE_BYTES = 1000
"""Bytes of an idle statement as JSON."""

_END = "/-"
"""The end of a path that appends to a list."""


def operations_of(statement: Statement, document: Document) -> list[Operation]:
    """The JSON Patch of a statement; empty if the document already has what it says.  Raises
    PatchError."""
    names, path = split_pointer(statement.path), statement.path
    ways = {"set": _set, "append": _append, "remove": _remove}
    made = ways[statement.way](path, member_at(names, document), statement.value)
    if made and statement.way != "remove":
        made = [*_missing_parents(names, document), *made]
    return made


def _missing_parents(names: Sequence[str], document: Document) -> Iterator[Operation]:
    """Operations that add the missing objects above a member."""
    for size in range(1, len(names)):
        if member_at(names[:size], document) is None:
            yield {"op": "add", "path": join_pointer(names[:size]), "value": {}}


def _set(path: str, member: Any, value: Any) -> list[Operation]:
    if is_empty(value) or (member is not None and equal_json(member, value)):
        return []
    return [{"op": "replace" if member is not None else "add", "path": path, "value": value}]


def is_empty(value: Any) -> bool:
    return value in (None, "", [])


def _append(path: str, member: Any, value: Any) -> list[Operation]:
    """Append the values that are not in the list yet; a member that is no list becomes one."""
    there = elements(member)
    known = set(map(key_of, there))
    new = [each for each in distinct_values(value) if key_of(each) not in known]
    if not new:
        return []
    if len(new) > MAX_OPERATIONS:
        raise PatchError(f"more than {MAX_OPERATIONS} operations")
    grown = [{"op": "add", "path": f"{path}{_END}", "value": each} for each in new]
    if isinstance(member, list):
        return grown
    return [{"op": "add", "path": path, "value": there}, *grown]


def distinct_values(value: Any) -> list[Any]:
    """The non-empty values of a list, or the one value, without duplicates."""
    named: dict[bytes, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        if each:
            named.setdefault(key_of(each), each)
    return list(named.values())


def elements(member: Any) -> list[Any]:
    """The elements of a list, or the one value if there is any."""
    return member if isinstance(member, list) else [member] if member not in (None, "") else []


def _remove(path: str, member: Any, value: Any) -> list[Operation]:
    """Remove a member, or the elements of a list that are equal to ``value``.

    A text that does not contain the value stays: "moved from Bonn to Berlin" removes Bonn, but not
    a Berlin that is there already.
    """
    if member is None or (isinstance(member, str) and not _has(member, value)):
        return []
    if isinstance(member, list) and not is_empty(value):
        key = key_of(value)
        gone = [i for i, each in enumerate(member) if key_of(each) == key]
        if len(gone) < len(member):
            return [{"op": "remove", "path": f"{path}/{i}"} for i in reversed(gone)]
    return [{"op": "remove", "path": path}]


def _has(member: str, value: Any) -> bool:
    """Whether a text contains any of the named values or is part of one; true without any."""
    texts = [each.strip().casefold() for each in distinct_values(value) if isinstance(each, str)]
    one = member.casefold()
    return not texts or any(one in each or each in one for each in texts)


def key_of(value: Any) -> bytes:
    """The key by which elements of a list are compared, without case."""
    return canonical(value.strip().casefold() if isinstance(value, str) else value)


def is_satisfied(statement: Statement, document: Document) -> bool:
    """Whether the document has what a statement says."""
    try:
        return not operations_of(statement, document)
    except PatchError:
        return False


def without_effect(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, marked as having changed nothing."""
    return (replace(each, operations=0) for each in statements)


def with_idle_statements(version: Version, more: Sequence[Statement]) -> Version:
    return replace(version, said=limit_idle((*version.said, *without_effect(more))))


def limit_idle(said: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements without the oldest idle ones; newer ones, which would overwrite these, are
    kept longer."""
    alike, kept = Counter[tuple[str, str, bytes]](), list[int]()
    newest_first = sorted(range(len(said)), key=lambda place: -said[place].source.at)
    for place in newest_first:
        each = said[place]
        if not each.operations:
            name = (each.way, each.path, key_of(each.value))
            if alike[name] >= MAX_REPEATS or alike.total() >= MAX_IDLE:
                continue
            alike[name] += 1
        kept.append(place)
    return tuple(said[place] for place in sorted(kept))
