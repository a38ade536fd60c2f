"""A list of messages, or of conversations, read item by item: what the first is, all are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from proxy.portable.broken import Broken
from proxy.portable.gathered import Gathered
from proxy.portable.listed import Listed
from proxy.portable.piece import Piece
from proxy.portable.talk import conversation_of
from proxy.portable.warnings import Warnings


class MessageLists(ABC):
    """See :class:`proxy.portable.source.Source`; ``most`` bounds a conversation, in bytes."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        self._items, self._one = Listed(most), Gathered(most)
        self._warnings = warnings
        self._several = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        try:
            for item in self._items.feed(data):
                yield from self._take(item)
        except ValueError as error:
            raise Broken(f"has {error}") from None

    def finish(self) -> Iterator[Piece]:
        try:
            self._items.finish()
            if not self._several:
                yield from self._conversation(self._one.messages)
        except ValueError as error:
            raise Broken(f"has {error}") from None

    @abstractmethod
    def _take(self, item: bytes) -> Iterator[Piece]:
        """Keep a message, or give the conversations that an item is.  Raises ValueError."""

    def _conversation(self, messages: list[bytes]) -> Iterator[Piece]:
        found = conversation_of(messages, self._warnings)
        if found is not None:
            yield found
