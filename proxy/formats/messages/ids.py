"""Ids of stored calls as the Messages API takes them: letters of its alphabet, and each once.

Some upstreams of chat completions count their calls anew in each answer, or give them no id at all.
The last call of an id keeps it, for the client may be about to answer it.  Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from proxy.formats.messages.blocks import Json
from proxy.formats.messages.part import Part

LONGEST_NAME = 128

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def with_fitting_ids(parts: Sequence[Part]) -> list[Part]:
    """The parts, stored calls and their results with ids that the API takes."""
    calls = [id for part in parts for id in _calls(part)]
    if not calls:
        return list(parts)
    naming = _Naming(calls)
    return [naming.named(part) for part in parts]


def _calls(part: Part) -> Iterator[str]:
    yield from part.calls
    yield from (_id(block) for block in part.blocks if block.get("type") == "tool_use")


def _id(block: Json, key: str = "id") -> str:
    """What a call is called, or the call of a result; "" where nobody has given it a name."""
    id = block.get(key)
    return id if isinstance(id, str) else ""


class _Naming:
    """Goes through a conversation whose calls have these ids, in order."""

    def __init__(self, calls: Sequence[str]) -> None:
        self._used = set(calls)
        self._left = Counter(calls)
        self._seen = Counter[str]()
        self._waiting = defaultdict[str, list[str]](list)

    def named(self, part: Part) -> Part:
        if not part.result:
            self._waiting.clear()
        for id in part.calls:
            self._left[id] -= 1
        if not part.blocks:
            return part
        blocks = tuple(map(self._block, part.blocks))
        same = all(mine is theirs for mine, theirs in zip(blocks, part.blocks, strict=True))
        return part if same else replace(part, blocks=blocks)

    def _block(self, block: Json) -> Json:
        if block.get("type") == "tool_use":
            id = _id(block)
            named = self._name(id)
            self._waiting[id].append(named)
            return _with(block, id=named, name=_fitting(str(block.get("name", ""))))
        waiting = self._waiting.get(_id(block, "tool_use_id"))
        if block.get("type") == "tool_result" and waiting:
            return _with(block, tool_use_id=waiting.pop(0))
        return block

    def _name(self, id: str) -> str:
        """The id of the next call that has this one."""
        self._left[id] -= 1
        self._seen[id] += 1
        if not self._left[id] and id and not _FOREIGN.search(id):
            return id
        number = self._seen[id]
        while (name := f"{_FOREIGN.sub('_', id) or 'call'}_{number}") in self._used:
            number += 1
        self._used.add(name)
        return name


def _with(block: Json, **said: str) -> Json:
    """The block itself where it says so already."""
    return block if said.items() <= block.items() else {**block, **said}


def _fitting(name: str) -> str:
    return _FOREIGN.sub("_", name)[:LONGEST_NAME] or "_"
