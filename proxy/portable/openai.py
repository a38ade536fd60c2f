"""A JSON list of OpenAI's chat messages, read as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.broken import Broken
from proxy.portable.piece import Piece
from proxy.portable.talk import conversation_of, conversations_in
from proxy.portable.warnings import Warnings
from proxy.portable.whole import Whole


class Messages(Whole):
    """See :class:`proxy.portable.source.Source`."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        super().__init__(most)
        self._warnings = warnings

    def finish(self) -> Iterator[Piece]:
        try:
            for messages in conversations_in(self.data):
                found = conversation_of(messages, self._warnings)
                if found is not None:
                    yield found
        except ValueError as error:
            raise Broken(f"has {error}") from None
