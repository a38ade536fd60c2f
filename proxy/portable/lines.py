"""Reads and writes the lines of an export.  Pure.

Files are not trusted: ids, positions and counts are checked before anything is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec
from msgspec.structs import asdict, replace

from proxy.chat.json_size import has_more_values
from proxy.chat.jsontext import UNREADABLE
from proxy.memory.archive import Session, SessionArchive, StoredMessage
from proxy.memory.items import Item
from proxy.portable import format
from proxy.portable.check import MAX_VALUES, NOT_UTF8, is_utf8
from proxy.portable.format import embed_json
from proxy.portable.grouping import IsAtomic, ItemBatcher, SessionBuilder
from proxy.portable.source import ImportedPart, ImportedSession, InvalidFile, Splitter, Warnings

_DECODERS = {format.kind_of(line): msgspec.json.Decoder(line) for line in format.LINES}
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)
_KNOWN = {format.kind_of(line): {"kind", *line.__struct_encode_fields__} for line in format.LINES}


class ExportReader:
    """Reads an export as it comes; implements :class:`proxy.portable.source.ImportSource`.

    Bounds in bytes: ``max_line_bytes`` of a line, ``max_bytes`` of what is held at once, which is a
    session or those items of a person for which ``is_atomic``.
    """

    def __init__(
        self, max_line_bytes: int, max_bytes: int, warnings: Warnings, is_atomic: IsAtomic
    ) -> None:
        self._is_atomic = is_atomic
        self._lines, self._max_bytes, self._warnings = Splitter(max_line_bytes), max_bytes, warnings
        self._has_header = False
        self._ended = False
        self._session: SessionBuilder | None = None
        self._items: ItemBatcher | None = None
        self._counts = [0, 0, 0]
        """Sessions, owners, items."""

    @property
    def line(self) -> int:
        return self._lines.number

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        for raw in self._lines.feed(data):
            yield from self._read(raw)

    def finish(self) -> Iterator[ImportedPart]:
        for raw in self._lines.finish():
            yield from self._read(raw)
        if not self._ended:
            raise InvalidFile(f"ends after line {self.line} without its last line: it is cut off")

    def _read(self, raw: bytes) -> Iterator[ImportedPart]:
        line = self._decode(raw)
        if line is None:
            return
        try:
            yield from self._add(line, len(raw))
        except ValueError as error:
            raise self._error(f"has {error}") from None

    def _decode(self, raw: bytes) -> format.ExportLine | None:
        """The line; None for an unknown kind."""
        if has_more_values(MAX_VALUES, raw):
            raise self._error(f"has over {MAX_VALUES} values")
        try:
            fields = _FIELDS.decode(raw)
            kind = _TEXT.decode(fields.get("kind", b"null"))
        except UNREADABLE:
            raise self._unreadable(raw, "is not a JSON object with a kind") from None
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
            raise self._unreadable(raw, f'is no line of the kind "{kind}": {error}') from None

    def _unreadable(self, raw: bytes, problem: str) -> InvalidFile:
        return self._error(problem if is_utf8(raw) else f"has {NOT_UTF8}")

    def _add(self, line: format.ExportLine, size: int) -> Iterator[ImportedPart]:
        if self._has_header != (not isinstance(line, format.Header)):
            raise ValueError("a header where there must be none, or none where there must be one")
        if self._ended:
            raise ValueError("something behind the last line")
        if isinstance(line, format.Header):
            self._begin_file(line)
        elif self._session is not None:
            yield from self._add_to_session(self._session, line, size)
        elif self._items is not None:
            yield from self._add_to_items(self._items, line, size)
        else:
            self._begin_group(line)

    def _begin_file(self, header: format.Header) -> None:
        if header.format != format.NAME:
            raise ValueError("the header of another format")
        if header.version != format.VERSION:
            raise ValueError(
                f"version {header.version} of the format, and only {format.VERSION} is known here"
            )
        self._has_header = True

    def _begin_group(self, line: format.ExportLine) -> None:
        if isinstance(line, format.SessionLine):
            self._session = SessionBuilder(line, self._max_bytes)
        elif isinstance(line, format.ShelfLine):
            self._items = ItemBatcher(line, self._max_bytes, self._is_atomic)
        elif isinstance(line, format.End):
            if [line.sessions, line.shelves, line.items] != self._counts:
                raise ValueError("totals that are not those of the lines before: some are missing")
            self._ended = True
        else:
            raise ValueError("a kind that does not belong here")

    def _add_to_session(
        self, session: SessionBuilder, line: format.ExportLine, size: int
    ) -> Iterator[ImportedSession]:
        imported = session.add(line, size)
        if imported is not None:
            self._session = None
            self._counts[0] += 1
            yield imported

    def _add_to_items(
        self, batcher: ItemBatcher, line: format.ExportLine, size: int
    ) -> Iterator[ImportedPart]:
        yield from batcher.add(line, size)
        if batcher.complete:
            self._items = None
            self._counts[1] += 1
            self._counts[2] += batcher.count

    def _error(self, problem: str) -> InvalidFile:
        return InvalidFile(problem, self.line)


def encode_line(line: format.ExportLine) -> bytes:
    """The JSON of a line with a line break."""
    return msgspec.json.encode(line) + b"\n"


def header_line(scope: format.Scope, now: float) -> bytes:
    return encode_line(
        format.Header(
            format=format.NAME,
            version=format.VERSION,
            minor=format.MINOR,
            scope=scope,
            exported_at=now,
        )
    )


def session_lines(archived: SessionArchive, dismissed: tuple[str, ...] = ()) -> Iterator[bytes]:
    """All lines of one session; see ``SessionLine`` for ``dismissed``."""
    yield session_line(archived.session, dismissed)
    for line in archived.lines:
        yield message_line(line)
    yield from closing_lines(archived, {line.card.id for line in archived.lines})


def session_line(session: Session, dismissed: tuple[str, ...]) -> bytes:
    details = session.details
    return encode_line(
        format.SessionLine(
            id=session.id,
            user=session.user,
            title=details.title,
            metadata=embed_json(details.metadata),
            ttl=details.ttl,
            system=embed_json(details.system),
            system_tokens=details.system_tokens,
            created_at=session.created_at,
            last_active_at=session.last_active_at,
            end=session.end,
            last=session.last,
            windows={name: (at.turn, at.seq) for name, at in sorted(session.windows.items())},
            dismissed=dismissed,
        )
    )


def message_line(line: StoredMessage) -> bytes:
    return encode_line(
        format.MessageLine(
            seq=line.position.seq,
            turn=line.position.turn,
            state=line.state,
            **asdict(line.card),
            body=embed_json(line.body),
            wire=embed_json(line.wire),
        )
    )


def closing_lines(archived: SessionArchive, message_ids: Collection[str]) -> Iterator[bytes]:
    """The lines after the messages; ``message_ids`` are the ids of these.

    Exchanges are reduced to these messages: others were recorded while the session was read.
    """
    exchanges = [
        placed._replace(messages=ids)
        for placed in archived.exchanges
        if (ids := tuple(id for id in placed.messages if id in message_ids))
    ]
    for placed in exchanges:
        yield encode_line(
            format.ExchangeLine(
                first=placed.first,
                messages=placed.messages,
                exchange=replace(placed.exchange, usage=None),
                usage=embed_json(placed.exchange.usage),
            )
        )
    for summary in archived.summaries:
        yield encode_line(format.SummaryLine(summary=summary))
    yield encode_line(
        format.SessionEnd(
            messages=len(message_ids), exchanges=len(exchanges), summaries=len(archived.summaries)
        )
    )


def owner_line(user: str, dismissed: tuple[str, ...]) -> bytes:
    """The line before the items of an owner; "" is the tenant."""
    return encode_line(format.ShelfLine(user=user or None, dismissed=dismissed))


def item_line(item: Item) -> bytes:
    value = embed_json(bytes(item.value))
    return encode_line(format.ItemLine(item=replace(item, value=value)))
