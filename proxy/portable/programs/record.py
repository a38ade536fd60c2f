"""Collects the lines of a coding agent's transcript and converts them to messages.  Pure.

Lines are entries, each with an earlier one as parent.  A tool result is moved to the answer with
its call, and the result's children follow that answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from proxy.portable.check import check_count
from proxy.portable.programs.blocks import (
    RESULTS_WITHOUT_CALL,
    Block,
    ToolCall,
    ToolResult,
    answer,
    size_of,
)
from proxy.portable.programs.tree import Branches, TimedMessage
from proxy.portable.source import ImportedMessage, Warnings


class _Entry(msgspec.Struct):
    """An entry: what a person said, or the blocks of an answer, or nothing."""

    parent: str
    user: TimedMessage | None = None
    blocks: list[Block] = msgspec.field(default_factory=list)


class TranscriptTree:
    def __init__(self, warnings: Warnings) -> None:
        self._warnings = warnings
        self._entries: dict[str, _Entry] = {}
        self._aliases: dict[str, str] = {}
        """Entries that are part of another, by id, with that entry's id."""
        self._results: dict[str, ToolResult] = {}
        self._count = 0

    def __contains__(self, id: str) -> bool:
        return id in self._entries or id in self._aliases

    def add_entry(self, id: str, parent: str) -> None:
        """Add an entry, to which blocks may be added."""
        self._entries[id] = _Entry(self._aliases.get(parent, parent))

    def add_user_message(self, id: str, parent: str, content: object, at: float | None) -> int:
        """Add an entry with a user message; returns its number of characters."""
        message = TimedMessage({"role": "user", "content": content}, at)
        self._entries[id] = _Entry(self._aliases.get(parent, parent), message)
        self._count_block()
        return len(content) if isinstance(content, str) else len(str(content))

    def add_alias(self, id: str, target: str) -> None:
        """Make an id mean an earlier entry, of which it is a part."""
        self._aliases[id] = target

    def add_block(self, id: str, block: Block) -> int:
        """Add a block of an answer; returns its number of characters."""
        if isinstance(block, ToolResult) and block.id:
            self._results.setdefault(block.id, block)
        else:
            self._entries[self._aliases.get(id, id)].blocks.append(block)
        self._count_block()
        return size_of(block)

    def _count_block(self) -> None:
        self._count += 1
        check_count(self._count)

    def messages(self, current: str) -> tuple[ImportedMessage, ...]:
        """All messages; the branch that ends with the entry ``current`` is active."""
        branches = Branches()
        for id, line in self._entries.items():
            branches.add(id, line.parent, self._messages_of(id, line))
        if self._results:
            self._warnings.add(RESULTS_WITHOUT_CALL)
        return branches.messages(self._aliases.get(current, current))

    def _messages_of(self, id: str, line: _Entry) -> Iterator[TimedMessage]:
        if line.user is not None:
            yield line.user
        calls = [block.id for block in line.blocks if isinstance(block, ToolCall)]
        results = [self._results.pop(call) for call in calls if call in self._results]
        yield from answer([*line.blocks, *results], id, self._warnings)
