"""Lines of ``{"messages": [...]}``, as models are trained with: each is a conversation."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.bounds import check_extent
from proxy.portable.broken import Broken
from proxy.portable.lines import Splitter
from proxy.portable.piece import Piece
from proxy.portable.talk import conversation_of, messages_in
from proxy.portable.warnings import Warnings


class ChatLines:
    """See :class:`proxy.portable.source.Source`; ``limit`` bounds a line, in bytes."""

    def __init__(self, limit: int, warnings: Warnings) -> None:
        self._lines, self._warnings = Splitter(limit), warnings

    def feed(self, data: bytes) -> Iterator[Piece]:
        for raw in self._lines.feed(data):
            yield from self._conversation(raw)

    def finish(self) -> Iterator[Piece]:
        for raw in self._lines.finish():
            yield from self._conversation(raw)

    def _conversation(self, raw: bytes) -> Iterator[Piece]:
        number = self._lines.number
        try:
            check_extent(raw)
            found = conversation_of(messages_in(raw), self._warnings, number)
        except ValueError as error:
            raise Broken(f"has {error}", number) from None
        if found is not None:
            yield found
