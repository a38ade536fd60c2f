"""OpenAI's chat messages: a list of them, a list of conversations, or one object with a list."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.bounds import check_extent
from proxy.portable.broken import Broken
from proxy.portable.gathered import Gathered
from proxy.portable.listed import Listed
from proxy.portable.piece import Piece
from proxy.portable.talk import conversation_of, conversations_in, is_conversation, messages_in
from proxy.portable.warnings import Warnings


class Messages:
    """See :class:`proxy.portable.source.Source`; ``most`` bounds a conversation, in bytes.

    What the first item is, all are: messages of one conversation, or conversations.
    """

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

    def _take(self, item: bytes) -> Iterator[Piece]:
        if self._items.number == 1:
            self._several = not self._items.listed or is_conversation(item)
        if not self._several:
            self._one.add(item)
            return
        check_extent(item)
        lists = conversations_in(item) if item[:1] == b"[" else [messages_in(item)]
        for messages in lists:
            yield from self._conversation(messages)

    def _conversation(self, messages: list[bytes]) -> Iterator[Piece]:
        found = conversation_of(messages, self._warnings)
        if found is not None:
            yield found
