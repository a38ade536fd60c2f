"""``conversations.json`` of a data export of Claude.ai: a list of conversations.  Pure.

A conversation is ``{"uuid", "name", "created_at", "chat_messages"}``, a message ``{"uuid",
"sender", "created_at", "content"}``, and in newer exports ``parent_message_uuid``, by which
messages form a tree; what the site itself loads names ``current_leaf_message_uuid`` as well.
Content is blocks as Anthropic's API has them; older exports have ``text`` alone.  There is no
published schema: socketteer/Claude-Conversation-Exporter (README.md) and Sinity/polylogue
(docs/providers/claude-ai.md) describe what is found in such files.
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.portable.check import Fields, list_in, objects_in, text_in, timestamp_in
from proxy.portable.programs.blocks import (
    FILES_REPLACED,
    THOUGHTS_SKIPPED,
    Block,
    TextBlock,
    answer,
    call_or_result,
    result_text,
)
from proxy.portable.programs.content import file_line
from proxy.portable.programs.tree import TimedMessage, TreeEntry, conversation
from proxy.portable.source import Conversation, Warnings

SKIPPED_BLOCKS = frozenset({"token_budget", "flag", ""})
"""Types of blocks without content."""


def conversation_of(fields: Fields, warnings: Warnings, number: int) -> Conversation | None:
    """None if nothing is said in it."""
    entries: list[TreeEntry] = []
    for message in objects_in(fields, "chat_messages"):
        previous = entries[-1].id if entries else ""
        id_ = text_in(message, "uuid") or f"#{len(entries)}"
        parent = text_in(message, "parent_message_uuid") or previous
        entries.append(TreeEntry(id_, parent, tuple(_messages_of(message, id_, warnings))))
    return conversation(
        entries,
        warnings,
        number,
        current=text_in(fields, "current_leaf_message_uuid"),
        id=text_in(fields, "uuid"),
        title=text_in(fields, "name"),
        created_at=timestamp_in(fields, "created_at"),
    )


def _messages_of(message: Fields, id_: str, warnings: Warnings) -> Iterator[TimedMessage]:
    at = timestamp_in(message, "created_at")
    blocks = list(_blocks(message, at, warnings))
    files = list(_files(message))
    if files:
        warnings.add(FILES_REPLACED)
    if text_in(message, "sender") == "assistant":
        lines = (TextBlock(line, at) for line in files)
        yield from answer([*blocks, *lines], id_, warnings)
        return
    text = "\n".join([*(block.text for block in blocks if isinstance(block, TextBlock)), *files])
    if text:
        yield TimedMessage({"role": "user", "content": text}, at)


def _blocks(message: Fields, at: float | None, warnings: Warnings) -> Iterator[Block]:
    content = list_in(message, "content")
    if not content:
        yield TextBlock(text_in(message, "text"), at)
    for block in content:
        if not isinstance(block, dict):
            continue
        kind = text_in(block, "type")
        when = timestamp_in(block, "start_timestamp") or at
        tool_block = call_or_result(block, when)
        if tool_block is not None:
            yield tool_block
        elif kind.endswith("thinking"):
            warnings.add(THOUGHTS_SKIPPED)
        elif kind not in SKIPPED_BLOCKS:
            yield TextBlock(result_text([block]), when)


def _files(message: Fields) -> Iterator[str]:
    """A line for each file, and the text extracted from it, if there is any."""
    for file in [*objects_in(message, "attachments"), *objects_in(message, "files")]:
        kind = text_in(file, "file_type") or text_in(file, "file_kind") or "file"
        yield file_line(file, kind=kind, name="file_name", size="file_size")
        text = text_in(file, "extracted_content")
        if text:
            yield text
