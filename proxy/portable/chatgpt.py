"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one."""

from __future__ import annotations

from collections.abc import Iterator

import ijson

from proxy.portable.broken import Broken
from proxy.portable.chatgpt_tree import conversation_of
from proxy.portable.piece import Piece
from proxy.portable.warnings import Warnings


class ChatGPT:
    """See :class:`proxy.portable.source.Source`.

    ``prefix`` is ijson's of a conversation: "item" in a list, "" where the file is one itself.
    ``most`` bounds a conversation, in bytes.
    """

    def __init__(self, prefix: str, most: int, warnings: Warnings) -> None:
        self._found = ijson.sendable_list()
        self._parser = ijson.items_coro(self._found, prefix)
        self._most, self._warnings = most, warnings
        self._size = self._count = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        self._size += len(data)
        try:
            self._parser.send(data)
        except ijson.JSONError:
            raise self._not_json() from None
        yield from self._complete()
        if self._size > self._most:
            raise Broken(
                f"has a conversation, number {self._count + 1}, of over {self._most} bytes"
            )

    def finish(self) -> Iterator[Piece]:
        try:
            self._parser.close()
        except ijson.JSONError:
            raise self._not_json() from None
        yield from self._complete()

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

    def _not_json(self) -> Broken:
        return Broken(f"is no JSON, or is cut off, behind conversation {self._count}")
