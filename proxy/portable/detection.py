"""The table of formats: detection by a file's beginning, and the reader of each."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

import ijson
import msgspec

from proxy.chat import jsontext
from proxy.portable import format
from proxy.portable.check import MAX_MESSAGES, NOT_UTF8, is_utf8
from proxy.portable.grouping import IsAtomic, never_atomic
from proxy.portable.lines import ExportReader
from proxy.portable.messages import ChatLines, Messages
from proxy.portable.names import Format
from proxy.portable.programs import chatgpt, claude, langmem, librechat, mem0, open_webui
from proxy.portable.programs.claude_code import ClaudeCode
from proxy.portable.programs.codex import Codex
from proxy.portable.programs.langchain import LangChain
from proxy.portable.programs.reading import (
    Conversations,
    Log,
    NoteList,
    ReadConversation,
    ReadNote,
    Transcript,
)
from proxy.portable.source import ImportSource, InvalidFile, Warnings

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Limits(msgspec.Struct, frozen=True):
    """Limits in bytes: of a line, and of what is held in memory (see the formats).

    ``is_atomic``: see ``grouping.IsAtomic``.
    """

    max_line_bytes: int
    max_bytes: int
    is_atomic: IsAtomic = never_atomic


DETECTION_BYTES = 64 * 1024
"""Bytes of a file's beginning by which its format is detected."""


class Beginning(msgspec.Struct, frozen=True):
    """The beginning of a file.

    ``listed``: it begins with a list.  ``keys``: the fields of its first object, as far as they are
    included; ``lines``: the fields of each of the first lines, empty if one is not a complete
    object; ``single``: there is only one line.
    """

    listed: bool
    keys: frozenset[str]
    lines: tuple[Mapping[str, bytes], ...]
    single: bool

    def has(self, *names: str) -> bool:
        """Whether the first object has all of these fields."""
        return self.keys.issuperset(names)

    def line_has(self, *names: str) -> bool:
        """Whether a complete line, or the incomplete first one, has all of these fields."""
        if self.listed:
            return False
        return self.has(*names) or any(line.keys() >= set(names) for line in self.lines)


class Reader(NamedTuple):
    """A format: ``matches`` recognises it by a file's beginning, ``make`` makes its reader."""

    matches: Callable[[Beginning], bool]
    make: Callable[[Limits, Warnings], ImportSource]


def _conversations(read: ReadConversation) -> Callable[[Limits, Warnings], ImportSource]:
    return lambda limits, warnings: Conversations(limits.max_bytes, warnings, read)


def _transcript(log: Callable[[Warnings], Log]) -> Callable[[Limits, Warnings], ImportSource]:
    return lambda limits, warnings: Transcript(
        limits.max_line_bytes, limits.max_bytes, warnings, log(warnings)
    )


def _notes(read: ReadNote, names: tuple[str, ...]) -> Callable[[Limits, Warnings], ImportSource]:
    return lambda limits, warnings: NoteList(limits.max_bytes, warnings, read, names)


LIBRECHAT_DEPTH = 2 * MAX_MESSAGES + 100
"""The limit on nesting of a conversation whose messages are nested in each other."""


def _librechat(limits: Limits, warnings: Warnings) -> ImportSource:
    read = librechat.conversation_of
    return Conversations(limits.max_bytes, warnings, read, librechat.parse_flat, LIBRECHAT_DEPTH)


def _is_export(file: Beginning) -> bool:
    header = file.lines[0]
    name = f'"{format.NAME}"'.encode()
    return header.get("kind") == b'"header"' and header.get("format") == name


def _is_claude_code(file: Beginning) -> bool:
    ids = ("parentUuid",), ("type", "sessionId"), ("type", "leafUuid"), ("type", "snapshot")
    return any(file.line_has(*names) for names in ids)


def _is_codex(file: Beginning) -> bool:
    first = file.has("timestamp", "type", "payload") or file.has("id", "timestamp", "instructions")
    return first and not file.listed


def _is_mem0(file: Beginning) -> bool:
    if not file.listed:
        return any(file.has(name) for name in mem0.LISTS)
    return file.has("memory") and any(map(file.has, ("id", "hash", "user_id", "created_at")))


def _is_langmem(file: Beginning) -> bool:
    wrapped = not file.listed and any(map(file.has, langmem.LISTS))
    return wrapped or (file.listed and file.has("namespace", "key", "value"))


def _is_open_webui(file: Beginning) -> bool:
    return file.has("chat") or (file.has("history") and file.has("models"))


def _is_librechat(file: Beginning) -> bool:
    return file.has("messagesTree") or (file.has("conversationId") and file.has("messages"))


def _is_chatgpt(file: Beginning) -> bool:
    listed = file.has("current_node") or file.has("conversation_id")
    return file.has("mapping") or (file.listed and listed)


def _is_chat_lines(file: Beginning) -> bool:
    return not file.listed and file.has("messages") and bool(file.lines[0] or file.single)


READERS: Mapping[Format, Reader] = {
    "memory-proxy": Reader(
        _is_export,
        lambda limits, warnings: ExportReader(
            limits.max_line_bytes, limits.max_bytes, warnings, limits.is_atomic
        ),
    ),
    "claude_code": Reader(_is_claude_code, _transcript(ClaudeCode)),
    "codex": Reader(_is_codex, _transcript(Codex)),
    "claude": Reader(
        lambda file: file.has("chat_messages"), _conversations(claude.conversation_of)
    ),
    "mem0": Reader(_is_mem0, _notes(mem0.note_of, mem0.LISTS)),
    "langmem": Reader(_is_langmem, _notes(langmem.note_of, langmem.LISTS)),
    "open_webui": Reader(_is_open_webui, _conversations(open_webui.conversation_of)),
    "librechat": Reader(_is_librechat, _librechat),
    "chat_jsonl": Reader(
        _is_chat_lines, lambda limits, warnings: ChatLines(limits.max_line_bytes, warnings)
    ),
    "openai": Reader(
        lambda file: file.has("messages") or (file.listed and file.has("role")),
        lambda limits, warnings: Messages(limits.max_bytes, warnings),
    ),
    "chatgpt": Reader(_is_chatgpt, _conversations(chatgpt.conversation_of)),
    "langchain": Reader(
        lambda file: file.listed and (file.has("type") or file.has("data")),
        lambda limits, warnings: LangChain(limits.max_bytes, warnings),
    ),
}
"""The formats; detection tries them in this order, the most specific first."""


def open_source(
    beginning: bytes, format_named: Format | None, limits: Limits, warnings: Warnings
) -> tuple[Format, ImportSource]:
    """The format of a file by its beginning, and its reader, which has read nothing yet.

    ``format_named`` is the format that the caller names.  Raises InvalidFile for an unknown format.
    """
    if b"\0" in beginning[:2] or beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise InvalidFile(f"has {NOT_UTF8}")
    format = format_named or detect(beginning)
    if format is None:
        raise InvalidFile(_unknown(beginning))
    return format, READERS[format].make(limits, warnings)


def _unknown(beginning: bytes) -> str:
    if not beginning.strip():
        return "is empty"
    if beginning[:2] == b"PK":
        return "is a ZIP archive; unpack it, and send the conversations.json in it"
    if beginning[:2] == b"\x1f\x8b":
        return "is compressed with gzip; unpack it"
    if not is_utf8(beginning):
        return f"has {NOT_UTF8}"
    return "has no format that is known here; say which it is: ?format="


def detect(beginning: bytes) -> Format | None:
    """The format of a file with this beginning; None if it is unknown."""
    text = beginning.removeprefix(BYTE_ORDER_MARK).lstrip()
    if text[:1] not in (b"{", b"["):
        return None
    complete, end, _ = text.rpartition(b"\n")
    rows = (complete if end else text).split(b"\n", MAX_LINES)[:MAX_LINES]
    lines = tuple(map(_fields, rows))
    file = Beginning(text[:1] == b"[", frozenset(_keys(text)), lines, not end)
    return next((name for name, reader in READERS.items() if reader.matches(file)), None)


MAX_LINES = 50
"""Lines that are parsed to detect a format."""


def _fields(line: bytes) -> dict[str, bytes]:
    try:
        return {name: raw.strip() for name, raw in jsontext.fields(line).items()}
    except jsontext.UNREADABLE:
        return {}


def _keys(text: bytes) -> set[str]:
    """The names of the fields of the first object, as far as they can be seen."""
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, use_float=True)  # a long number is no harm
    with suppress(ijson.JSONError, ValueError, StopIteration):  # what was read until then is enough
        parser.send(text)
    return set(_outer(events))


def _outer(events: list[tuple[str, object]]) -> list[str]:
    depth, keys = 0, []
    for event, value in events:
        if event == "map_key" and depth == 1:
            keys.append(str(value))
        elif event == "start_map":
            depth += 1
        elif event == "end_map":
            depth -= 1
            if depth == 0:
                break
    return keys
