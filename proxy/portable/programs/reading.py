"""Readers of other programs' files: lists of conversations, the lines of one conversation, or lists
of memories.  Implement :class:`proxy.portable.source.ImportSource`.

They hold one conversation, or some notes, in memory at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Protocol

from proxy.chat import jsontext
from proxy.portable.check import Fields, check_count, list_in, value_of
from proxy.portable.source import (
    MAX_DEPTH,
    Conversation,
    ImportedPart,
    InvalidFile,
    ListSplitter,
    Note,
    Notes,
    Splitter,
    Warnings,
)

UNREADABLE = "what is no JSON, too large a number, or nested too deeply"


def parse_object(item: bytes) -> Fields:
    """Raises ValueError."""
    value = value_of(item, UNREADABLE)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _problem(error: Exception) -> str:
    """What is wrong; RecursionError: the value can be read but is too deep to be written."""
    return UNREADABLE if isinstance(error, RecursionError) else str(error)


class ObjectList(ABC):
    """A list of objects, or one object; ``max_bytes`` and ``max_depth`` (levels) bound each."""

    item_name = "conversation"

    def __init__(self, max_bytes: int, warnings: Warnings, max_depth: int = MAX_DEPTH) -> None:
        self._items, self._warnings = ListSplitter(max_bytes, max_depth), warnings
        self._count = 0

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        try:
            for item in self._items.feed(data):
                yield from self._read(item)
                self._count += 1
        except jsontext.UNREADABLE as error:
            raise self._invalid_file(error) from None

    def finish(self) -> Iterator[ImportedPart]:
        try:
            self._items.finish()
        except ValueError as error:
            raise self._invalid_file(error) from None
        return iter(())

    @abstractmethod
    def _read(self, item: bytes) -> Iterator[ImportedPart]:
        """Convert an item, number ``_count`` + 1.  Raises ValueError."""

    def _invalid_file(self, error: Exception) -> InvalidFile:
        """The error, placed by the number of the last item that was read."""
        return InvalidFile(f"has {_problem(error)}, behind {self.item_name} {self._count}")


ReadConversation = Callable[[Fields, Warnings, int], Conversation | None]
"""Converts a program's object, with its number, to a conversation; None if it is empty."""


class Conversations(ObjectList):
    """``value`` reads an object.  It and ``read`` raise ValueError."""

    def __init__(
        self,
        max_bytes: int,
        warnings: Warnings,
        read: ReadConversation,
        value: Callable[[bytes], Fields] = parse_object,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        super().__init__(max_bytes, warnings, max_depth)
        self._conversation, self._value = read, value

    def _read(self, item: bytes) -> Iterator[ImportedPart]:
        number = self._count + 1
        conversation = self._conversation(self._value(item), self._warnings, number)
        if conversation is None:
            self._warnings.add(f"conversation {number} says nothing and was left out")
        else:
            yield conversation


class Log(Protocol):
    """The lines of one conversation, one after the other."""

    def add(self, fields: Fields, line: int) -> int:
        """Read a line; returns the number of characters that are held for it."""
        ...

    def conversation(self) -> Conversation | None:
        """The conversation of all lines; None if it has no messages."""
        ...


LINE_OVERHEAD = 512
"""Bytes of memory that a line takes in addition to its text."""


class Transcript:
    """Reads the lines of one conversation; ``max_bytes`` bounds what is held in memory."""

    def __init__(self, max_line_bytes: int, max_bytes: int, warnings: Warnings, log: Log) -> None:
        self._lines, self._warnings, self._log = Splitter(max_line_bytes), warnings, log
        self._max_bytes, self._left = max_bytes, max_bytes

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        for raw in self._lines.feed(data):
            self._add(raw)
        return iter(())

    def finish(self) -> Iterator[ImportedPart]:
        for raw in self._lines.finish():
            self._add(raw)
        try:
            conversation = self._log.conversation()
        except jsontext.UNREADABLE as error:
            raise InvalidFile(f"has {_problem(error)}") from None
        if conversation is None:
            self._warnings.add("a conversation in which nothing is said was left out")
        else:
            yield conversation

    def _add(self, raw: bytes) -> None:
        number = self._lines.number
        try:
            self._left -= LINE_OVERHEAD + self._log.add(parse_object(raw), number)
            if self._left < 0:
                raise ValueError(f"more than {self._max_bytes} bytes of a conversation before it")
        except jsontext.UNREADABLE as error:
            raise InvalidFile(f"has {_problem(error)}", number) from None


ReadNote = Callable[[Fields, Warnings, int], tuple[str | None, Note] | None]
"""Converts a program's object to its user (None if not named) and a note; None if it is none."""

BATCH = 200
"""Notes of a user that are returned together."""

MAX_HELD = 1024 * 1024
"""Bytes of notes that are held to be returned together."""


class NoteList(ObjectList):
    """Notes in a list, or in an object that has one under one of ``names``."""

    item_name = "memory"

    def __init__(
        self, max_bytes: int, warnings: Warnings, read: ReadNote, names: tuple[str, ...]
    ) -> None:
        super().__init__(max_bytes, warnings)
        self._note, self._names = read, names
        self._waiting: dict[str | None, list[Note]] = {}
        self._waiting_bytes = 0

    def _read(self, item: bytes) -> Iterator[ImportedPart]:
        fields = parse_object(item)
        listed = [list_in(fields, name) for name in self._names if name in fields]
        if self._items.listed or not listed:
            yield from self._add(fields)
            return
        check_count(len(listed[0]))
        for item_fields in listed[0]:
            if not isinstance(item_fields, dict):
                raise ValueError("what is no memory")
            yield from self._add(item_fields)
            self._count += 1

    def finish(self) -> Iterator[ImportedPart]:
        yield from super().finish()
        yield from self._flush()

    def _add(self, fields: Fields) -> Iterator[ImportedPart]:
        user_and_note = self._note(fields, self._warnings, self._count + 1)
        if user_and_note is None:
            return
        user, note = user_and_note
        notes = self._waiting.setdefault(user, [])
        notes.append(note)
        self._waiting_bytes += LINE_OVERHEAD + len(note.value)
        if len(notes) == BATCH or self._waiting_bytes > MAX_HELD:
            yield from self._flush()

    def _flush(self) -> Iterator[ImportedPart]:
        for user, notes in self._waiting.items():
            yield Notes(user, tuple(notes))
        self._waiting.clear()
        self._waiting_bytes = 0
