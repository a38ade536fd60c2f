"""``conversations.json`` of a ChatGPT data export: a list of conversations, read one by one."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.broken import Broken
from proxy.portable.chatgpt_tree import conversation_of
from proxy.portable.listed import Listed
from proxy.portable.piece import Piece
from proxy.portable.reading import value_of
from proxy.portable.warnings import Warnings

UNREADABLE = "what is no JSON, too large a number, or nested too deeply"


class ChatGPT:
    """See :class:`proxy.portable.source.Source`; ``most`` bounds a conversation, in bytes."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        self._items, self._warnings = Listed(most), warnings
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        try:
            for item in self._items.feed(data):
                yield from self._conversation(item)
        except ValueError as error:
            raise self._broken(error) from None

    def finish(self) -> Iterator[Piece]:
        try:
            self._items.finish()
        except ValueError as error:
            raise self._broken(error) from None
        return iter(())

    def _conversation(self, item: bytes) -> Iterator[Piece]:
        value = value_of(item, UNREADABLE)
        self._count += 1
        found = conversation_of(value) if isinstance(value, dict) else None
        if found is None:
            self._warnings.add(f"conversation {self._count} says nothing and was left out")
        else:
            yield found

    def _broken(self, error: ValueError) -> Broken:
        """By the conversation before."""
        return Broken(f"has {error}, behind conversation {self._count}")
