"""A conversation that LibreChat exports as JSON.  Pure.

It is ``{"conversationId", "title", "options", "recursive", "branches"}`` with ``messages``, a list
in which each names its ``parentMessageId``, or with ``messagesTree``, whose messages have those
that follow as ``children``: as deep as the conversation is long.  What it does not say is which
branch was open: the one with the newest message counts.  The source is danny-avila/LibreChat:
client/src/hooks/Conversations/useExportConversation.ts, client/src/hooks/Messages/
useBuildMessageTree.ts, and api/server/utils/import/importers.js with the samples beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import ijson
import msgspec

from proxy.portable.check import (
    Fields,
    check_count,
    check_text,
    fields_in,
    list_in,
    objects_in,
    replace_lone_surrogates,
    text_in,
    timestamp_in,
)
from proxy.portable.programs.blocks import (
    FILES_REPLACED,
    THOUGHTS_SKIPPED,
    Block,
    TextBlock,
    ToolCall,
    ToolResult,
    answer,
    as_arguments,
    result_text,
)
from proxy.portable.programs.content import file_line
from proxy.portable.programs.reading import UNREADABLE
from proxy.portable.programs.tree import TimedMessage, TreeEntry, conversation
from proxy.portable.source import Conversation, Warnings

_Kind = Literal["message", "messages", "value"]


class _Open(msgspec.Struct):
    """An open JSON container: the conversation or a message, a list of messages, or another."""

    value: Any
    kind: _Kind
    key: str = ""


LISTS = ("messages", "messagesTree", "children")
"""The fields that have messages."""

ERRORS = "errors were left out"

SKIPPED_PARTS = frozenset({"agent_update", "activity_label", "summary"})
"""Types of parts with metadata: the agent, its activity, a summary."""

PIECE = 64 * 1024
"""Bytes that are read by one call."""


def parse_flat(item: bytes) -> Fields:
    """Parse a conversation with its messages in one list, "messages", parents first.  Raises
    ValueError."""
    check_text(item)
    item = replace_lone_surrogates(item)
    events = ijson.sendable_list()
    parser = ijson.basic_parse_coro(events, use_float=True)  # a long number is no harm
    builder = _FlatBuilder()
    try:
        for at in range(0, len(item), PIECE):
            parser.send(item[at : at + PIECE])
            for event, value in events:
                builder.handle_event(event, value)
            events.clear()
        parser.close()
    except ijson.JSONError:
        raise ValueError(UNREADABLE) from None
    return {**builder.top, "messages": builder.messages}


class _FlatBuilder:
    """Builds values from parser events without recursion, and collects nested messages."""

    def __init__(self) -> None:
        self.top: Fields = {}
        self.messages: list[Fields] = []
        self._open: list[_Open] = []

    def handle_event(self, event: str, value: object) -> None:
        if event == "map_key":
            self._open[-1].key = str(value)
        elif event == "start_map":
            self._begin({})
        elif event == "start_array":
            self._begin([])
        elif event in ("end_map", "end_array"):
            self._open.pop()
        else:
            self._put(value)

    def _begin(self, value: Fields | list[object]) -> None:
        parent = self._open[-1] if self._open else None
        kind: _Kind = "value"
        if parent is None and isinstance(value, dict):
            self.top, kind = value, "message"
        elif parent and parent.kind == "message" and parent.key in LISTS:
            kind = "messages"
        elif parent and parent.kind == "messages" and isinstance(value, dict):
            kind = "message"
            self.messages.append(value)
            check_count(len(self.messages))
        else:
            self._put(value)
        self._open.append(_Open(value, kind))

    def _put(self, value: object) -> None:
        parent = self._open[-1] if self._open else None
        if parent and isinstance(parent.value, dict):
            parent.value[parent.key] = value
        elif parent and parent.kind == "value":
            parent.value.append(value)


def conversation_of(fields: Fields, warnings: Warnings, number: int) -> Conversation | None:
    """None if nothing is said in it."""
    instructions = text_in(fields_in(fields, "options"), "promptPrefix")
    return conversation(
        _entries(list_in(fields, "messages"), warnings),
        warnings,
        number,
        system=[{"role": "system", "content": instructions}] if instructions else (),
        id=text_in(fields, "conversationId"),
        title=text_in(fields, "title"),
    )


def _entries(messages: list[object], warnings: Warnings) -> Iterator[TreeEntry]:
    previous = ""
    for place, message in enumerate(messages):
        if isinstance(message, dict):
            id_ = text_in(message, "messageId") or f"#{place}"
            parent = text_in(message, "parentMessageId") or previous
            yield TreeEntry(id_, parent, tuple(_messages_of(message, id_, warnings)))
            previous = id_


def _messages_of(message: Fields, id_: str, warnings: Warnings) -> Iterator[TimedMessage]:
    at = timestamp_in(message, "createdAt")
    if message.get("error") is True:
        warnings.add(ERRORS)
        return
    parts = objects_in(message, "content") or [{"type": "text", "text": message.get("text")}]
    files = _files(message, warnings)
    if message.get("isCreatedByUser") is not True:
        yield from _answer(parts, files, id_, at, warnings)
        return
    blocks = [block for part in parts for block in _blocks(part, at, warnings)]
    yield from _user_messages(
        [*(block.text for block in blocks if isinstance(block, TextBlock)), *files], at
    )


def _user_messages(texts: Iterable[str], at: float | None) -> Iterator[TimedMessage]:
    text = "\n".join(filter(None, texts))
    if text:
        yield TimedMessage({"role": "user", "content": text}, at)


def _answer(
    parts: Sequence[Fields], files: Iterable[str], id_: str, at: float | None, warnings: Warnings
) -> Iterator[TimedMessage]:
    """The messages of an answer, with the user's messages that were sent while it was made."""
    blocks: list[Block] = []
    id_prefix = id_
    for place, part in enumerate(parts):
        if text_in(part, "type") == "steer":
            yield from answer(blocks, id_prefix, warnings)
            yield from _user_messages([text_in(part, "steer"), *_files(part, warnings)], at)
            blocks, id_prefix = [], f"{id_}_{place}"
        else:
            blocks += _blocks(part, at, warnings)
    yield from answer([*blocks, *(TextBlock(line, at) for line in files)], id_prefix, warnings)


def _files(fields: Fields, warnings: Warnings) -> list[str]:
    files = [
        file_line(file, kind=text_in(file, "type") or "file", name="filename", size="bytes")
        for file in objects_in(fields, "files")
    ]
    if files:
        warnings.add(FILES_REPLACED)
    return files


def _blocks(part: Fields, at: float | None, warnings: Warnings) -> Iterator[Block]:
    kind, call = text_in(part, "type"), fields_in(part, "tool_call")
    if kind == "think":
        warnings.add(THOUGHTS_SKIPPED)
    elif kind == "error":
        warnings.add(ERRORS)
    elif call:
        yield from _call_blocks(call, at)
    elif kind == "text":
        inner = fields_in(part, "text")
        yield TextBlock(text_in(inner, "value") if inner else text_in(part, "text"), at)
    elif kind not in SKIPPED_PARTS:
        yield TextBlock(result_text([part]), at)


def _call_blocks(call: Fields, at: float | None) -> Iterator[Block]:
    function = fields_in(call, "function") or call
    id = text_in(call, "id")
    arguments = function.get("args", function.get("arguments", {}))
    yield ToolCall(text_in(function, "name") or "tool", as_arguments(arguments), id, at)
    output = function.get("output")
    if output is not None:
        yield ToolResult(result_text(output), id, at)
