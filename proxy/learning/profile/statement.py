"""What somebody said of one member of a profile: what that changes in a document.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from proxy.chat.jsontext import canonical
from proxy.learning.profile.document import (
    MOST_OPERATIONS,
    Document,
    Operation,
    PatchError,
    Statement,
    Version,
    inner_at,
    pointer,
    same,
    tokens,
)

MOST_IDLE = 40
"""Statements of a version that changed nothing; of more the oldest are left out."""

MOST_ALIKE = 3
"""Of these, how many say the same."""

MOST_IDLE_BYTES = 1000
"""Of one of these, as JSON."""

_END = "/-"
"""How a path ends by which a list grows."""


def operations_of(statement: Statement, document: Document) -> list[Operation]:
    """A JSON Patch that does what was said; empty where the document is so already.

    Raises PatchError.
    """
    names, path = tokens(statement.path), statement.path
    ways = {"set": _set, "append": _append, "remove": _remove}
    made = ways[statement.way](path, inner_at(names, document), statement.value)
    if made and statement.way != "remove":
        made = [*_holders(names, document), *made]
    return made


def _holders(names: Sequence[str], document: Document) -> Iterator[Operation]:
    """What adds the objects that hold a member, where there are none yet."""
    for size in range(1, len(names)):
        if inner_at(names[:size], document) is None:
            yield {"op": "add", "path": pointer(names[:size]), "value": {}}


def _set(path: str, held: Any, value: Any) -> list[Operation]:
    if is_nothing(value) or (held is not None and same(held, value)):
        return []
    return [{"op": "replace" if held is not None else "add", "path": path, "value": value}]


def is_nothing(value: Any) -> bool:
    return value in (None, "", [])


def _append(path: str, held: Any, value: Any) -> list[Operation]:
    """A member that is no list yet becomes one; what is in it already is not added."""
    there = elements(held)
    known = set(map(key_of, there))
    new = [each for each in named_in(value) if key_of(each) not in known]
    if not new:
        return []
    if len(new) > MOST_OPERATIONS:
        raise PatchError(f"more than {MOST_OPERATIONS} operations")
    grown = [{"op": "add", "path": f"{path}{_END}", "value": each} for each in new]
    if isinstance(held, list):
        return grown
    return [{"op": "add", "path": path, "value": there}, *grown]


def named_in(value: Any) -> list[Any]:
    """The values that are named, each once: one, those of a list, or none."""
    named: dict[bytes, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        if each:
            named.setdefault(key_of(each), each)
    return list(named.values())


def elements(held: Any) -> list[Any]:
    """The elements of a list; what is none is one, or nothing."""
    return held if isinstance(held, list) else [held] if held not in (None, "") else []


def _remove(path: str, held: Any, value: Any) -> list[Operation]:
    """A member, or of a list, where a value is named, this element of it.

    A text that does not have what is named stays: "moved from Bonn to Berlin" takes Bonn away
    where Berlin stands already.
    """
    if held is None or (isinstance(held, str) and not _has(held, value)):
        return []
    if isinstance(held, list) and not is_nothing(value):
        key = key_of(value)
        gone = [i for i, each in enumerate(held) if key_of(each) == key]
        if len(gone) < len(held):
            return [{"op": "remove", "path": f"{path}/{i}"} for i in reversed(gone)]
    return [{"op": "remove", "path": path}]


def _has(held: str, value: Any) -> bool:
    """Whether a text has some of what is named, or is part of it; so it does where nothing is."""
    texts = [each.strip().casefold() for each in named_in(value) if isinstance(each, str)]
    one = held.casefold()
    return not texts or any(one in each or each in one for each in texts)


def key_of(value: Any) -> bytes:
    """What two elements of a list are the same by: case does not count."""
    return canonical(value.strip().casefold() if isinstance(value, str) else value)


def holds(statement: Statement, document: Document) -> bool:
    """Is the document as was said?"""
    try:
        return not operations_of(statement, document)
    except PatchError:
        return False


# Of those that change nothing only so many are kept


def idle(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The same, none of which has changed anything."""
    return (replace(each, operations=0) for each in statements)


def with_idle(version: Version, more: Sequence[Statement]) -> Version:
    """A version behind which more was said that changed nothing."""
    return replace(version, said=bounded((*version.said, *idle(more))))


def bounded(said: Sequence[Statement]) -> tuple[Statement, ...]:
    """Without the oldest of those that changed nothing: what these would be written over by is
    newer, and stays longer."""
    alike, kept = Counter[tuple[str, str, bytes]](), list[int]()
    newest_first = sorted(range(len(said)), key=lambda place: -said[place].source.at)
    for place in newest_first:
        each = said[place]
        if not each.operations:
            name = (each.way, each.path, key_of(each.value))
            if alike[name] >= MOST_ALIKE or alike.total() >= MOST_IDLE:
                continue
            alike[name] += 1
        kept.append(place)
    return tuple(said[place] for place in sorted(kept))
