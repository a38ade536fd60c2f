"""From the lines of an export back to memory.  Pure.

What is read was written by others: ids, places and counts are checked before anything is stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from proxy.chat.extent import has_over
from proxy.portable import format
from proxy.portable.bounds import MOST_VALUES
from proxy.portable.broken import Broken
from proxy.portable.gathering import Gathered, ItemsOf
from proxy.portable.lines import Splitter
from proxy.portable.piece import Piece, Session
from proxy.portable.warnings import Warnings

UNREADABLE = (ValueError, RecursionError)

_DECODERS = {format.kind_of(line): msgspec.json.Decoder(line) for line in format.LINES}
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_KNOWN = {format.kind_of(line): {"kind", *line.__struct_encode_fields__} for line in format.LINES}


class Export:
    """Reads an export as it comes; implements :class:`proxy.portable.source.Source`.

    ``limit`` bounds a line, ``most`` what has to be held at once: a session, or what was learned of
    a person; both in bytes.
    """

    def __init__(self, limit: int, most: int, warnings: Warnings) -> None:
        self._lines, self._most, self._warnings = Splitter(limit), most, warnings
        self._begun = False
        self._ended = False
        self._session: Gathered | None = None
        self._shelf: ItemsOf | None = None
        self._counts = [0, 0, 0]
        """Sessions, shelves, items."""

    @property
    def line(self) -> int:
        return self._lines.number

    def feed(self, data: bytes) -> Iterator[Piece]:
        for raw in self._lines.feed(data):
            yield from self._read(raw)

    def finish(self) -> Iterator[Piece]:
        for raw in self._lines.finish():
            yield from self._read(raw)
        if not self._ended:
            raise Broken(f"ends after line {self.line} without its last line: it is cut off")

    def _read(self, raw: bytes) -> Iterator[Piece]:
        line = self._decoded(raw)
        if line is None:
            return
        try:
            yield from self._take(line, len(raw))
        except ValueError as error:
            raise self._broken(f"has {error}") from None

    def _decoded(self, raw: bytes) -> format.Line | None:
        """The line; None for one of a kind that is not known."""
        if has_over(MOST_VALUES, raw):
            raise self._broken(f"has over {MOST_VALUES} values")
        try:
            fields = _FIELDS.decode(raw)
            kind = _TEXT.decode(fields.get("kind", b"null"))
        except UNREADABLE:
            raise self._broken("is not a JSON object with a kind") from None
        if kind not in _DECODERS:
            self._warnings.add(f'lines of the unknown kind "{kind[:50]}" were left out', self.line)
            return None
        for name in fields.keys() - _KNOWN[kind]:
            self._warnings.add(
                f'the unknown field "{name[:50]}" of "{kind}" was left out', self.line
            )
        try:
            return _DECODERS[kind].decode(raw)
        except UNREADABLE as error:
            raise self._broken(f'is no line of the kind "{kind}": {error}') from None

    def _take(self, line: format.Line, size: int) -> Iterator[Piece]:
        if self._begun != (not isinstance(line, format.Header)):
            raise ValueError("a header where there must be none, or none where there must be one")
        if self._ended:
            raise ValueError("something behind the last line")
        if isinstance(line, format.Header):
            self._begin(line)
        elif self._session is not None:
            yield from self._of_session(self._session, line, size)
        elif self._shelf is not None:
            yield from self._of_shelf(self._shelf, line, size)
        else:
            self._between(line)

    def _begin(self, header: format.Header) -> None:
        if header.format != format.NAME:
            raise ValueError("the header of another format")
        if header.version != format.VERSION:
            raise ValueError(
                f"version {header.version} of the format, and only {format.VERSION} is known here"
            )
        self._begun = True

    def _between(self, line: format.Line) -> None:
        if isinstance(line, format.SessionLine):
            self._session = Gathered(line, self._most)
        elif isinstance(line, format.ShelfLine):
            self._shelf = ItemsOf(line, self._most)
        elif isinstance(line, format.End):
            if [line.sessions, line.shelves, line.items] != self._counts:
                raise ValueError("totals that are not those of the lines before: some are missing")
            self._ended = True
        else:
            raise ValueError("a kind that does not belong here")

    def _of_session(self, session: Gathered, line: format.Line, size: int) -> Iterator[Session]:
        done = session.add(line, size)
        if done is not None:
            self._session = None
            self._counts[0] += 1
            yield done

    def _of_shelf(self, shelf: ItemsOf, line: format.Line, size: int) -> Iterator[Piece]:
        yield from shelf.add(line, size)
        if shelf.complete:
            self._shelf = None
            self._counts[1] += 1
            self._counts[2] += shelf.count

    def _broken(self, what: str) -> Broken:
        return Broken(what, self.line)
