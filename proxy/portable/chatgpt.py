"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ijson

from proxy.portable.broken import Broken
from proxy.portable.chatgpt_tree import conversation_of
from proxy.portable.depth import Depth
from proxy.portable.piece import Piece
from proxy.portable.warnings import Warnings


class ChatGPT:
    """See :class:`proxy.portable.source.Source`.

    ``prefix`` is ijson's of a conversation: "item" in a list, "" where the file is one itself.
    ``most`` bounds a conversation, in bytes.
    """

    def __init__(self, prefix: str, most: int, warnings: Warnings) -> None:
        self._found = ijson.sendable_list()
        # Floats: the parser itself refuses a number that is too large to be made, as it must.
        self._parser = ijson.items_coro(self._found, prefix, use_float=True)
        self._most, self._warnings = most, warnings
        self._depth = Depth()
        self._size = self._count = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        if not self._depth.feed(data):
            raise Broken(f"is nested too deeply, behind conversation {self._count}")
        self._size += len(data)
        yield from self._read(lambda: self._parser.send(data))
        if self._size > self._most:
            raise Broken(
                f"has a conversation, number {self._count + 1}, of over {self._most} bytes"
            )

    def finish(self) -> Iterator[Piece]:
        yield from self._read(self._parser.close)

    def _read(self, step: Callable[[], None]) -> Iterator[Piece]:
        """What a step of the parser completes, also where it ends at something broken."""
        broken = False
        try:
            step()
        except (ijson.JSONError, ValueError):
            broken = True
        yield from self._complete()
        if broken:
            raise Broken(
                "is no JSON, is cut off, or has too large a number, "
                f"behind conversation {self._count}"
            )

    def _complete(self) -> Iterator[Piece]:
        found, self._found[:] = list(self._found), []
        for value in found:
            self._size = 0
            self._count += 1
            conversation = conversation_of(value) if isinstance(value, dict) else None
            if conversation is None:
                self._warnings.add(f"conversation {self._count} says nothing and was left out")
            else:
                yield conversation
