"""Makes ids of stored calls valid for the Messages API: allowed characters, and no duplicates.

Some upstreams of chat completions number their calls from the start in each answer, or give them no
id.  The last call with an id keeps it, since the client may be about to answer it.  Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from proxy.formats.messages.blocks import Json
from proxy.formats.messages.part import Part

MAX_NAME = 128

_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def with_valid_ids(parts: Sequence[Part]) -> list[Part]:
    """The parts, with valid ids in stored calls and their results."""
    calls = [id for part in parts for id in _calls(part)]
    if not calls:
        return list(parts)
    naming = _IdAssigner(calls)
    return [naming.assign_ids(part) for part in parts]


def _calls(part: Part) -> Iterator[str]:
    yield from part.calls
    yield from (_id(block) for block in part.blocks if block.get("type") == "tool_use")


def _id(block: Json, key: str = "id") -> str:
    """The id in a field of a block; "" if it has none."""
    id = block.get(key)
    return id if isinstance(id, str) else ""


class _IdAssigner:
    """Assigns ids to the stored calls of a conversation; ``calls`` are all its calls' ids.

    ``assign_ids`` must be called with each part, in order.
    """

    def __init__(self, calls: Sequence[str]) -> None:
        self._used = set(calls)
        self._remaining = Counter(calls)
        self._seen = Counter[str]()
        self._unanswered = defaultdict[str, list[str]](list)

    def assign_ids(self, part: Part) -> Part:
        if not part.is_result:
            self._unanswered.clear()
        for id in part.calls:
            self._remaining[id] -= 1
        if not part.blocks:
            return part
        blocks = tuple(map(self._block, part.blocks))
        same = all(mine is theirs for mine, theirs in zip(blocks, part.blocks, strict=True))
        return part if same else replace(part, blocks=blocks)

    def _block(self, block: Json) -> Json:
        if block.get("type") == "tool_use":
            id = _id(block)
            named = self._unique_id(id)
            self._unanswered[id].append(named)
            return _with(block, id=named, name=_valid_name(str(block.get("name", ""))))
        waiting = self._unanswered.get(_id(block, "tool_use_id"))
        if block.get("type") == "tool_result" and waiting:
            return _with(block, tool_use_id=waiting.pop(0))
        return block

    def _unique_id(self, id: str) -> str:
        """A valid id for the next call with this one: the same if possible."""
        self._remaining[id] -= 1
        self._seen[id] += 1
        if not self._remaining[id] and id and not _FOREIGN.search(id):
            return id
        number = self._seen[id]
        while (name := f"{_FOREIGN.sub('_', id) or 'call'}_{number}") in self._used:
            number += 1
        self._used.add(name)
        return name


def _with(block: Json, **said: str) -> Json:
    """The block with these fields; the same object if it has them already."""
    return block if said.items() <= block.items() else {**block, **said}


def _valid_name(name: str) -> str:
    return _FOREIGN.sub("_", name)[:MAX_NAME] or "_"
