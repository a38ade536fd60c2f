"""A JSON Patch carried out on another document than it was made for.  Pure.

What an operation meant is what counts, and not where that was: an index in a list follows its
element, what is replaced but was never there is added, and what means something that is not there
any more is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proxy.learning.profile.document import (
    Document,
    Operation,
    after,
    applied,
    pointer,
    same,
    tokens,
)

PLACES = ("from", "path")
"""The members of an operation that are places in a document."""

PUTS = ("add", "replace")
"""The operations that put their own value somewhere."""

_END = "-"
"""Behind the last element of a list."""


def rebased(
    patch: Sequence[Operation], was: Document, now: Document
) -> tuple[list[Operation], Document]:
    """The operations that still mean something, as they are now, and the document after them."""
    done: list[Operation] = []
    start = now
    for operation in patch:
        try:
            steps = list(_meant(operation, was, now))
            now = applied(now, steps)
            done += steps
        except (LookupError, ValueError):
            if operation["op"] == "test":
                return [], start
        was = after(was, operation)
    return done, now


def _meant(operation: Operation, was: Document, now: Document) -> Iterator[Operation]:
    """The operations that do to ``now`` what this one did to ``was``.

    What holds a value that is put somewhere is put there first.  Raises LookupError for places that
    are not there any more.
    """
    found = dict(operation)
    for place in PLACES:
        if place in operation:
            names = tokens(operation[place])
            puts = place == "path" and operation["op"] in (*PUTS, "move", "copy")
            holders, found[place] = _followed(names, was, now, puts=puts)
            yield from holders
    if operation["op"] == "replace" and operation["path"] and not _there(found["path"], now):
        found["op"] = "add"
    yield found


def _followed(
    names: Sequence[str], was: Any, now: Any, *, puts: bool
) -> tuple[list[Operation], str]:
    """Where a place is now, and what to add first so that there is such a place."""
    missing: list[Operation] = []
    path: list[str] = []
    for number, name in enumerate(names):
        last = number == len(names) - 1
        step = _index(name, was, now, last=last, puts=puts) if isinstance(was, list) else name
        path.append(step)
        was = _inner(was, name)
        now = _inner(now, step)
        if now is None and puts and not last:
            now = [] if isinstance(was, list) else {}
            missing.append({"op": "add", "path": pointer(path), "value": now})
    return missing, pointer(path)


def _index(name: str, was: list[Any], now: Any, *, last: bool, puts: bool) -> str:
    """Which element of the list as it is now is the one at an index of the list as it was.

    In lists of one length it is the one in its place, unless it is itself what is taken away.
    """
    there = now if isinstance(now, list) else []
    if name == _END:
        return name
    index = int(name)
    if index < min(len(was), len(there)) and same(was[index], there[index]):
        return name
    if index < len(was):
        for other, value in enumerate(there):
            if same(value, was[index]):
                return str(other)
        if len(was) == len(there) and (puts or not last):
            return name
    if puts and last:
        return _END
    raise LookupError(name)


def _inner(value: Any, name: str) -> Any:
    """What is at a name or an index; None if there is nothing."""
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def _there(path: str, now: Any) -> bool:
    *outer, last = tokens(path)
    for name in outer:
        now = _inner(now, name)
    return last in now if isinstance(now, dict) else isinstance(now, list) and last != _END
