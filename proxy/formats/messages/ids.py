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
    assigner = _IdAssigner(calls)
    return [assigner.assign_ids(part) for part in parts]


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
        self._occurrences = Counter[str]()
        self._unanswered_ids = defaultdict[str, list[str]](list)

    def assign_ids(self, part: Part) -> Part:
        if not part.is_result:
            self._unanswered_ids.clear()
        for id in part.calls:
            self._remaining[id] -= 1
        if not part.blocks:
            return part
        blocks = tuple(map(self._block_with_id, part.blocks))
        is_unchanged = all(new is old for new, old in zip(blocks, part.blocks, strict=True))
        return part if is_unchanged else replace(part, blocks=blocks)

    def _block_with_id(self, block: Json) -> Json:
        if block.get("type") == "tool_use":
            id = _id(block)
            new_id = self._unique_id(id)
            self._unanswered_ids[id].append(new_id)
            return _with(block, id=new_id, name=_valid_name(str(block.get("name", ""))))
        new_ids = self._unanswered_ids.get(_id(block, "tool_use_id"))
        if block.get("type") == "tool_result" and new_ids:
            return _with(block, tool_use_id=new_ids.pop(0))
        return block

    def _unique_id(self, id: str) -> str:
        """A valid id for the next call with this one: the same if possible."""
        self._remaining[id] -= 1
        self._occurrences[id] += 1
        if not self._remaining[id] and id and not _FOREIGN.search(id):
            return id
        number = self._occurrences[id]
        while (name := f"{_FOREIGN.sub('_', id) or 'call'}_{number}") in self._used:
            number += 1
        self._used.add(name)
        return name


def _with(block: Json, **fields: str) -> Json:
    """The block with these fields; the same object if it has them already."""
    return block if fields.items() <= block.items() else {**block, **fields}


def _valid_name(name: str) -> str:
    return _FOREIGN.sub("_", name)[:MAX_NAME] or "_"
