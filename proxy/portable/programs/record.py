"""Collects the lines of a coding agent's transcript and converts them to messages.  Pure.

Lines are entries, each with an earlier one as parent.  A tool result is moved to the answer with
its call, and the result's children follow that answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from proxy.portable.check import check_count
from proxy.portable.programs.blocks import (
    STRAY,
    Block,
    ToolCall,
    ToolResult,
    answer,
    size_of,
)
from proxy.portable.programs.tree import Branches, TimedMessage
from proxy.portable.source import ImportedMessage, Warnings


class _Line(msgspec.Struct):
    """An entry: what a person said, or the blocks of an answer, or nothing."""

    parent: str
    user: TimedMessage | None = None
    blocks: list[Block] = msgspec.field(default_factory=list)


class Record:
    def __init__(self, warnings: Warnings) -> None:
        self._warnings = warnings
        self._lines: dict[str, _Line] = {}
        self._same: dict[str, str] = {}
        """Entries that are part of another, by id, with that entry's id."""
        self._results: dict[str, ToolResult] = {}
        self._count = 0

    def __contains__(self, id: str) -> bool:
        return id in self._lines or id in self._same

    def enter(self, id: str, parent: str) -> None:
        """An entry, to which blocks may come."""
        self._lines[id] = _Line(self._same.get(parent, parent))

    def ask(self, id: str, parent: str, content: object, at: float | None) -> int:
        """An entry that a person has said; how many characters it holds."""
        spoken = TimedMessage({"role": "user", "content": content}, at)
        self._lines[id] = _Line(self._same.get(parent, parent), spoken)
        self._counted()
        return len(content) if isinstance(content, str) else len(str(content))

    def join(self, id: str, whole: str) -> None:
        """An entry that is part of an earlier one."""
        self._same[id] = whole

    def say(self, id: str, block: Block) -> int:
        """A block of an answer; how many characters it holds."""
        if isinstance(block, ToolResult) and block.id:
            self._results.setdefault(block.id, block)
        else:
            self._lines[self._same.get(id, id)].blocks.append(block)
        self._counted()
        return size_of(block)

    def _counted(self) -> None:
        self._count += 1
        check_count(self._count)

    def messages(self, current: str) -> tuple[ImportedMessage, ...]:
        """All that was said; active is the branch that ends with this entry."""
        branches = Branches()
        for id, line in self._lines.items():
            branches.add(id, line.parent, self._said(id, line))
        if self._results:
            self._warnings.add(STRAY)
        return branches.said(self._same.get(current, current))

    def _said(self, id: str, line: _Line) -> Iterator[TimedMessage]:
        if line.user is not None:
            yield line.user
        calls = [block.id for block in line.blocks if isinstance(block, ToolCall)]
        results = [self._results.pop(call) for call in calls if call in self._results]
        yield from answer([*line.blocks, *results], id, self._warnings)
