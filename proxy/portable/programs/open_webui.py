"""Chats that Open WebUI exports: a JSON list of chats.  Pure.

A chat is ``{"id", "user_id", "title", "created_at", "chat"}``, and ``chat.history`` has
``messages``, by their ids with ``parentId``, and ``currentId``, the end of the branch that is
shown.  An answer of newer releases has ``output``, items of the Responses API; in all of them the
content has what was thought and called in ``<details>``.  The source is open-webui/open-webui:
backend/open_webui/models/chats.py (what a chat has) and src/lib/utils/index.ts; a sample is in
danny-avila/LibreChat, api/server/utils/import/__data__/openwebui-export.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from proxy.chat import jsontext
from proxy.memory.ids import is_id
from proxy.portable.check import Fields, fields_in, list_in, objects_in, text_in, timestamp_in
from proxy.portable.programs.blocks import (
    FILES_REPLACED,
    THOUGHTS_SKIPPED,
    Block,
    TextBlock,
    ToolCall,
    ToolResult,
    answer,
    as_arguments,
    blocks_of,
)
from proxy.portable.programs.content import file_line
from proxy.portable.programs.tree import TimedMessage, TreeEntry, conversation
from proxy.portable.source import Conversation, Warnings

_DETAILS = re.compile(r'<details type="(\w+)"([^<>]*)>')
_END = "</details>"
_FIELD = re.compile(r'\b(\w+)="([^"]*)"')
"""Both exclude the characters that begin another match, so that the time is linear."""


def conversation_of(fields: Fields, warnings: Warnings, number: int) -> Conversation | None:
    """None if nothing is said in it."""
    chat = fields_in(fields, "chat") or fields
    history = fields_in(chat, "history")
    system = text_in(fields_in(chat, "params"), "system") or text_in(chat, "system")
    user = text_in(fields, "user_id")
    return conversation(
        _entries(history, chat, warnings),
        warnings,
        number,
        current=text_in(history, "currentId"),
        system=[{"role": "system", "content": system}] if system else (),
        id=text_in(fields, "id"),
        title=text_in(fields, "title") or text_in(chat, "title"),
        created_at=timestamp_in(fields, "created_at") or timestamp_in(chat, "timestamp"),
        user=user if is_id(user) else "",
    )


def _entries(history: Fields, chat: Fields, warnings: Warnings) -> Iterator[TreeEntry]:
    """The messages of the history, or the chat's list of messages without one."""
    previous = ""
    named = list(fields_in(history, "messages").items()) or [
        ("", message) for message in list_in(chat, "messages")
    ]
    for place, (id, message) in enumerate(named):
        if isinstance(message, dict):
            id_ = id or text_in(message, "id") or f"#{place}"
            parent = text_in(message, "parentId") if "parentId" in message else previous
            yield TreeEntry(id_, parent, tuple(_messages_of(message, id_, warnings)))
            previous = id_


def _messages_of(message: Fields, id_: str, warnings: Warnings) -> Iterator[TimedMessage]:
    at = timestamp_in(message, "timestamp")
    files = [
        file_line(file, kind=text_in(file, "type") or "file")
        for file in objects_in(message, "files")
    ]
    if files:
        warnings.add(FILES_REPLACED)
    if text_in(message, "role") == "assistant":
        blocks = [*_blocks(message, at, warnings), *(TextBlock(line, at) for line in files)]
        yield from answer(blocks, id_, warnings)
        return
    text = "\n".join(filter(None, [text_in(message, "content"), *files]))
    if text:
        yield TimedMessage({"role": "user", "content": text}, at)


def _blocks(message: Fields, at: float | None, warnings: Warnings) -> Iterator[Block]:
    items = objects_in(message, "output")
    for item in items:
        yield from blocks_of(item, at, warnings)
    if not items:
        yield from _blocks_of_text(text_in(message, "content"), at, warnings)


def _blocks_of_text(text: str, at: float | None, warnings: Warnings) -> Iterator[Block]:
    """The blocks of a text with ``<details>``: calls are parsed, reasoning is dropped."""
    place = 0
    while match := _DETAILS.search(text, place):
        end = text.find(_END, match.end())
        end = len(text) if end < 0 else end
        yield TextBlock(text[place : match.start()].strip(), at)
        place = end + len(_END)
        if match[1] == "tool_calls":
            attributes = {name: unescape(value) for name, value in _FIELD.findall(match[2])}
            id, output = attributes.get("id", ""), text[match.end() : end]
            arguments = as_arguments(_unquoted(attributes.get("arguments", "{}")))
            yield ToolCall(attributes.get("name") or "tool", arguments, id, at)
            yield ToolResult(_unquoted(attributes.get("result") or unescape(output)), id, at)
        elif match[1] == "reasoning":
            warnings.add(THOUGHTS_SKIPPED)
        else:
            yield TextBlock(unescape(text[match.end() : end]).strip(), at)
    yield TextBlock(text[place:].strip(), at)


def _unquoted(text: str) -> str:
    """The value of a JSON string; other text unchanged."""
    try:
        found = jsontext.decode(text.encode("utf-8", "replace"))
    except jsontext.UNREADABLE:
        return text
    return found if isinstance(found, str) else text
