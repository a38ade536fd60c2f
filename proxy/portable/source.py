"""What all import formats share: splitting bytes into lines or list items, the imported values,
errors and warnings.

Items are not parsed: they are bytes, found by their brackets.  Strings are skipped by a regular
expression, so that the time depends on the number of brackets outside of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from proxy.memory.archive import SessionArchive
from proxy.memory.items import Item
from proxy.portable.check import MAX_VALUES


class Splitter:
    """Splits bytes into lines of at most ``max_line_bytes``; ``number`` counts them from 1."""

    def __init__(self, max_line_bytes: int) -> None:
        self._limit = max_line_bytes
        self._rest = bytearray()
        self.number = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that this completes, without their ends; empty ones are left out.  Raises
        InvalidFile for one that is too long."""
        first, *others = data.split(b"\n")
        self._rest += first
        self._check_length(len(self._rest))
        for piece in others:
            yield from self._end_line()
            self._check_length(len(piece))
            self._rest += piece

    def finish(self) -> Iterator[bytes]:
        """A last line without an end."""
        if self._rest:
            yield from self._end_line()

    def _end_line(self) -> Iterator[bytes]:
        line = bytes(self._rest).strip()
        self._rest.clear()
        self.number += 1
        if line:
            yield line

    def _check_length(self, size: int) -> None:
        if size > self._limit:
            raise InvalidFile(f"is longer than {self._limit} bytes", self.number + 1)


MAX_DEPTH = 500
"""The default limit on nesting: ten times that of real files."""

_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_TO_STRING = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+("?)', re.DOTALL)
_STRING_ENDS = re.compile(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_OPENING = b"[{"
_SPACE = b" \t\n\r"
_NOT_A_LIST = "no list of objects, or more than that"


class ListSplitter:
    """Splits a JSON list into items of at most ``max_bytes`` and ``max_depth`` levels; a single
    object is one item.

    ``listed``: the text is a list; None before its beginning.  ``number``: the items so far.
    Raises ValueError unless it is a list of objects or lists.
    """

    def __init__(self, max_bytes: int, max_depth: int = MAX_DEPTH) -> None:
        self._max_bytes, self._max_depth = max_bytes, max_depth
        self.listed: bool | None = None
        self.number = 0
        self._levels = self._brackets = 0
        self._in_string = self._escaped = self._list_ended = False
        """Within a string; the next byte is escaped; the end of the list was read."""
        self._item = bytearray()
        self._gap = b""
        """The bytes before the next item, without white space."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The items that this completes."""
        if self.listed is None:
            data = data.lstrip(_SPACE)
            self.listed = data[:1] == b"[" if data else None
        start, at = 0, self._end_of_string(data)
        while bracket := _TO_BRACKET.match(data, at):
            before, at = bracket.span(1)
            inside = self._levels > self._item_level
            self._levels += 1 if data[before] in _OPENING else -1
            self._brackets += 1
            self._check()
            if not inside:
                self._check_gap(data[start:before], data[before])
                start = before if self._levels > self._item_level else at
            elif self._levels == self._item_level:
                yield self._end_item(data[start:at])
                start = at
        if self._levels > self._item_level:
            self._extend_item(data[start:])
        else:
            self._extend_gap(data[start:])
        self._find_open_string(data, at)

    def finish(self) -> None:
        """Raises ValueError for a text that is incomplete."""
        if not self._list_ended:
            raise ValueError("no end: it is cut off")

    def _check(self) -> None:
        if self._levels > self._max_depth:
            raise ValueError("too deep a nesting")
        if self._brackets > 2 * MAX_VALUES:
            raise ValueError(f"over {MAX_VALUES} lists and objects in item {self.number + 1}")

    @property
    def _item_level(self) -> int:
        """The level on which items stand."""
        return 1 if self.listed else 0

    def _check_gap(self, gap: bytes, bracket: int) -> None:
        """Check the bytes before a bracket that begins an item, or ends the list."""
        self._extend_gap(gap)
        opens = bracket in _OPENING
        if self._list_ended or self._gap != (b"," if opens and self.number else b""):
            raise ValueError(_NOT_A_LIST)
        self._gap, self._list_ended = b"", not opens

    def _extend_gap(self, gap: bytes) -> None:
        self._gap += gap.strip(_SPACE)
        if self._gap not in (b"", b",") or (self._gap and self._list_ended):
            raise ValueError(_NOT_A_LIST)

    def _end_item(self, rest: bytes) -> bytes:
        self._extend_item(rest)
        item = bytes(self._item)
        self._item.clear()
        self._brackets = 0
        self.number += 1
        self._list_ended = not self.listed
        return item

    def _extend_item(self, data: bytes) -> None:
        self._item += data
        if len(self._item) > self._max_bytes:
            raise ValueError(f"more than {self._max_bytes} bytes of item {self.number + 1}")

    def _end_of_string(self, data: bytes) -> int:
        """The end of a string that began before this piece of bytes."""
        if not self._in_string:
            return 0
        begin = 1 if self._escaped and data else 0
        end = _STRING_ENDS.match(data, begin)
        if end:
            self._in_string = self._escaped = False
            return end.end()
        if data:
            self._escaped = _escapes(data[begin:])
        return len(data)

    def _find_open_string(self, data: bytes, at: int) -> None:
        """Find out whether a string begins after the last bracket and does not end."""
        begun = _TO_STRING.match(data, at)
        if begun and begun[1]:
            self._in_string, self._escaped = True, _escapes(data[begun.end() :])


def _escapes(data: bytes) -> bool:
    """Whether the data ends with a backslash that escapes the next byte."""
    return (len(data) - len(data.rstrip(b"\\"))) % 2 == 1


class ImportSource(Protocol):
    """Reads a file in chunks of bytes, and returns what can be imported.

    Both methods may take long and should run in a thread.  They raise InvalidFile.
    """

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        """What these bytes complete."""
        ...

    def finish(self) -> Iterator[ImportedPart]:
        """What the end of the file completes."""
        ...


class ImportedSession(msgspec.Struct, frozen=True):
    """One session, to be restored as it was; ``dismissed``: see ``format.SessionLine``."""

    archived: SessionArchive
    dismissed: tuple[str, ...] = ()


class Items(msgspec.Struct, frozen=True):
    """Some items of a person, or with ``user`` "" of the tenant itself.

    Those of namespaces that must be imported together come in the last batch.
    """

    user: str
    items: tuple[Item, ...]
    dismissed: tuple[str, ...] = ()


class ImportedMessage(msgspec.Struct, frozen=True):
    """A message of another program: its JSON in OpenAI's chat format, and its time.

    ``parent`` is the index of the message that it follows, -1 for none: messages of a conversation
    with branches form a tree.  ``active``: it is on the branch that the conversation ended with.
    """

    message: bytes
    at: float | None = None
    parent: int = -1
    active: bool = True


class Conversation(msgspec.Struct, frozen=True):
    """A conversation of another program.  Parents come before their children.

    ``system`` are its instructions, each a message's JSON.  ``user`` is the owner that the file
    names.  Times are Unix seconds.  What the file does not say is None.
    """

    messages: tuple[ImportedMessage, ...]
    system: tuple[bytes, ...] = ()
    id: str | None = None
    title: str | None = None
    created_at: float | None = None
    user: str | None = None


class Note(msgspec.Struct, frozen=True):
    """What another program remembers of a person: a sentence, or if ``text`` is None a value.

    ``value`` is the JSON object that has it, at ``labels`` and ``key``.  It expires at ``until``.
    Times are Unix seconds, None if not known.
    """

    labels: tuple[str, ...]
    key: str
    value: bytes
    text: str | None = None
    metadata: Mapping[str, object] = msgspec.field(default_factory=dict)
    created_at: float | None = None
    updated_at: float | None = None
    until: float | None = None


class Notes(msgspec.Struct, frozen=True):
    """Some notes on one person; ``user`` is None if the file names none."""

    user: str | None
    notes: tuple[Note, ...]


ImportedPart = ImportedSession | Items | Conversation | Notes


class InvalidFile(Exception):
    """A file is invalid: ``line`` from 1 (None for the whole file), and ``problem`` is wrong.

    Both make a sentence: "Line 3 is longer than 10 bytes."
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line

    @property
    def sentence(self) -> str:
        where = "The file" if self.line is None else f"Line {self.line}"
        return f"{where} {self.problem}."


MAX_WARNINGS = 100


class Warnings:
    """Collects warnings, each with its first line and how often it came, at most
    ``MAX_WARNINGS``."""

    def __init__(self) -> None:
        self._lines: dict[str, int | None] = {}
        self._counts: Counter[str] = Counter()
        self._omitted = 0

    def add(self, warning: str, line: int | None = None) -> None:
        if warning in self._lines or len(self._lines) < MAX_WARNINGS:
            self._lines.setdefault(warning, line)
            self._counts[warning] += 1
        else:
            self._omitted += 1

    @property
    def all(self) -> list[str]:
        sentences = [
            f"{warning[:1].upper()}{warning[1:]}{_place(line, self._counts[warning])}."
            for warning, line in self._lines.items()
        ]
        return [*sentences, f"And {self._omitted} more."] if self._omitted else sentences


def _place(line: int | None, count: int) -> str:
    if line is None:
        return f" ({count} times)" if count > 1 else ""
    return f" (line {line}, and {count - 1} more)" if count > 1 else f" (line {line})"
