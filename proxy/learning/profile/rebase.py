"""Rebases a JSON Patch from the document that it was made for onto another one.  Pure.

An index in a list follows its element; replacing what does not exist becomes adding it; and an
operation on what does not exist any more is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from proxy.learning.profile.document import (
    Document,
    Operation,
    apply_operation,
    apply_patch,
    equal_json,
    join_pointer,
    split_pointer,
)

PATH_FIELDS = ("from", "path")
"""The fields of an operation that are paths."""

PUT_OPERATIONS = ("add", "replace")
"""The operations that put a ``value``."""

_END = "-"
"""The index after the last element of a list."""


def rebased(
    patch: Sequence[Operation], was: Document, now: Document
) -> tuple[list[Operation], Document]:
    """The operations rebased from ``was`` onto ``now``, and the document after them."""
    done: list[Operation] = []
    start = now
    for operation in patch:
        try:
            steps = list(_translated(operation, was, now))
            now = apply_patch(now, steps)
            done += steps
        except (LookupError, ValueError):
            if operation["op"] == "test":
                return [], start
        was = apply_operation(was, operation)
    return done, now


def _translated(operation: Operation, was: Document, now: Document) -> Iterator[Operation]:
    """The operations that do to ``now`` what this one did to ``was``.

    Missing parents of a value are added first.  Raises LookupError for paths that do not exist any
    more.
    """
    found = dict(operation)
    for place in PATH_FIELDS:
        if place in operation:
            names = split_pointer(operation[place])
            puts = place == "path" and operation["op"] in (*PUT_OPERATIONS, "move", "copy")
            holders, found[place] = _relocated(names, was, now, puts=puts)
            yield from holders
    if operation["op"] == "replace" and operation["path"] and not _exists(found["path"], now):
        found["op"] = "add"
    yield found


def _relocated(
    names: Sequence[str], was: Any, now: Any, *, puts: bool
) -> tuple[list[Operation], str]:
    """The path in ``now`` of what has these names in ``was``, and the operations that add its
    missing parents."""
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
            missing.append({"op": "add", "path": join_pointer(path), "value": now})
    return missing, join_pointer(path)


def _index(name: str, was: list[Any], now: Any, *, last: bool, puts: bool) -> str:
    """The index in ``now`` of the element at an index of ``was``.

    In lists of equal length it is the same index, unless the element itself is removed.
    """
    there = now if isinstance(now, list) else []
    if name == _END:
        return name
    index = int(name)
    if index < min(len(was), len(there)) and equal_json(was[index], there[index]):
        return name
    if index < len(was):
        for other, value in enumerate(there):
            if equal_json(value, was[index]):
                return str(other)
        if len(was) == len(there) and (puts or not last):
            return name
    if puts and last:
        return _END
    raise LookupError(name)


def _inner(value: Any, name: str) -> Any:
    """The member at a name or an index, None if there is none."""
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


def _exists(path: str, now: Any) -> bool:
    *outer, last = split_pointer(path)
    for name in outer:
        now = _inner(now, name)
    return last in now if isinstance(now, dict) else isinstance(now, list) and last != _END
