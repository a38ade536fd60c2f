"""Collects the lines of one session, or of one owner's items, until it is complete.  Pure.

Raises ValueError for an invalid line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from proxy.memory.archive import Details, PlacedExchange, Session, SessionArchive, StoredMessage
from proxy.memory.items import Item, Namespace
from proxy.memory.model import Card, Position, Summary
from proxy.portable import format
from proxy.portable.check import check_id, check_item, check_session
from proxy.portable.format import extract_json, extract_json_or_none
from proxy.portable.source import ImportedSession, Items

LINE_OVERHEAD = 1024
"""Bytes of memory that a line takes in addition to its length."""

BATCH = 200
"""Items that are passed on together."""


class _MemoryLimit:
    """Limits the memory for held lines to ``max_bytes`` bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._left = max_bytes, max_bytes

    def reserve(self, size: int) -> None:
        self._left -= size + LINE_OVERHEAD
        if self._left < 0:
            raise ValueError(
                f"more than {self._max_bytes} bytes of a session or a person before it"
            )


class SessionBuilder:
    """Builds a session; ``max_bytes`` bounds its lines."""

    def __init__(self, begin: format.SessionLine, max_bytes: int) -> None:
        self._begin, self._memory = begin, _MemoryLimit(max_bytes)
        self._lines: list[StoredMessage] = []
        self._exchanges: list[PlacedExchange] = []
        self._summaries: list[Summary] = []

    def add(self, line: format.ExportLine, size: int) -> ImportedSession | None:
        """Take a line; returns the session after its last one."""
        self._memory.reserve(size)
        if isinstance(line, format.MessageLine):
            self._lines.append(_line(line))
        elif isinstance(line, format.ExchangeLine):
            self._exchanges.append(_placed(line))
        elif isinstance(line, format.SummaryLine):
            self._summaries.append(line.summary)
        elif isinstance(line, format.SessionEnd):
            return self._complete(line)
        else:
            raise ValueError("a kind that does not belong into a session")
        return None

    def _complete(self, end: format.SessionEnd) -> ImportedSession:
        counts = [len(self._lines), len(self._exchanges), len(self._summaries)]
        if counts != [end.messages, end.exchanges, end.summaries]:
            raise ValueError("counts that are not those of the session: lines are missing")
        archived = SessionArchive(
            session=_session(self._begin, self._lines, self._summaries),
            lines=tuple(self._lines),
            exchanges=tuple(self._exchanges),
            summaries=tuple(self._summaries),
        )
        check_session(archived)
        return ImportedSession(archived, self._begin.dismissed)


IsAtomic = Callable[[Namespace], bool]
"""Whether all items of a namespace must be imported together, in the last batch."""


def never_atomic(namespace: Namespace) -> bool:
    """No namespace must be imported in one piece."""
    return False


class ItemBatcher:
    """One owner's items, returned in batches.

    ``max_bytes`` bounds those for which ``is_atomic``.
    """

    def __init__(self, begin: format.ShelfLine, max_bytes: int, is_atomic: IsAtomic) -> None:
        self._user, self._dismissed = begin.user or "", begin.dismissed
        if begin.user is not None:
            check_id(begin.user, "a user")
        self._memory, self._is_atomic = _MemoryLimit(max_bytes), is_atomic
        self._atomic: list[Item] = []
        self._others: list[Item] = []
        self.count = 0
        self.complete = False

    def add(self, line: format.ExportLine, size: int) -> Iterator[Items]:
        if isinstance(line, format.ItemLine):
            yield from self._item(_item(line), size)
        elif isinstance(line, format.ShelfEnd):
            if line.items != self.count:
                raise ValueError("a count that is not that of the items: lines are missing")
            self.complete = True
            yield Items(self._user, (*self._others, *self._atomic), self._dismissed)
        else:
            raise ValueError("a kind that does not belong to items")

    def _item(self, item: Item, size: int) -> Iterator[Items]:
        check_item(item, self._user)
        self.count += 1
        if self._is_atomic(item.namespace):
            self._memory.reserve(size)
            self._atomic.append(item)
            return
        self._others.append(item)
        if len(self._others) == BATCH:
            yield Items(self._user, tuple(self._others))
            self._others.clear()


def _session(
    begin: format.SessionLine, lines: list[StoredMessage], summaries: list[Summary]
) -> Session:
    active = [line.card.tokens for line in lines if line.state == "active"]
    windows = {name: Position(*at) for name, at in begin.windows.items()}
    return Session(
        id=begin.id,
        user=begin.user,
        messages=len(active),
        tokens=sum(active),
        window_start=0,  # a store knows it from the windows
        created_at=begin.created_at,
        last_active_at=begin.last_active_at,
        details=Details(
            title=begin.title,
            metadata=extract_json(begin.metadata, dict),
            ttl=begin.ttl,
            system=extract_json_or_none(begin.system, list),
            system_tokens=begin.system_tokens,
        ),
        summary=summaries[0] if summaries else None,
        end=begin.end,
        last=begin.last,
        windows=windows,
    )


def _line(line: format.MessageLine) -> StoredMessage:
    card = Card(**{name: getattr(line, name) for name in Card.__struct_fields__})
    return StoredMessage(
        Position(line.turn, line.seq),
        card,
        line.state,
        extract_json(line.body, dict),
        extract_json_or_none(line.wire, dict),
    )


def _placed(line: format.ExchangeLine) -> PlacedExchange:
    usage = extract_json_or_none(line.usage, dict)
    exchange = msgspec.structs.replace(line.exchange, usage=usage)
    return PlacedExchange(line.first, exchange, line.messages)


def _item(line: format.ItemLine) -> Item:
    value = msgspec.Raw(extract_json(line.item.value, dict))
    return msgspec.structs.replace(line.item, value=value)
