"""OpenAI's chat messages: a list of them, a list of conversations, or one object with a list."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.bounds import check_extent
from proxy.portable.message_lists import MessageLists
from proxy.portable.piece import Piece
from proxy.portable.talk import conversations_in, is_conversation, messages_in


class Messages(MessageLists):
    """See :class:`proxy.portable.message_lists.MessageLists`."""

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
