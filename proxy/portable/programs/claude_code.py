"""A transcript of Claude Code, ``~/.claude/projects/*/SESSION.jsonl``.  Pure.

A line is ``{"type", "uuid", "parentUuid", "sessionId", "timestamp", "isSidechain", "message"}``,
where ``message`` is one of Anthropic's API.  An answer is several lines with the same
``message.id``, one for each block, and what a tool gave is a user message.  After a rewind lines
follow an earlier one, and the others stay in the file: the branch with the last line is the one
that counts, or the one that a later ``last-prompt`` names.  Where the conversation was compacted,
``parentUuid`` is null and ``logicalParentUuid`` names the line before.  What a person sends while
an answer is being made is no user message, but an ``attachment``.  There is no published schema:
DRMacIver/claude-reliability (notes/transcript-format.md), anthropics/claude-code issues 24471 and
92849 and backnotprop/plannotator pull request 1141 describe what is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.chat.typed import typed_part
from proxy.portable.check import Fields, fields_in, list_in, text_in, timestamp_in
from proxy.portable.programs.blocks import (
    PROGRAM_TEXT_SKIPPED,
    THOUGHTS_SKIPPED,
    TextBlock,
    call_or_result,
    result_text,
)
from proxy.portable.programs.content import content_of
from proxy.portable.programs.record import TranscriptTree
from proxy.portable.source import Conversation, Warnings

SIDE_CONVERSATIONS_SKIPPED = "what agents did on their own, in side conversations, was left out"
PARENT_MISSING = "a line follows one that is not in the file, and was put behind the one before it"
DUPLICATE_LINES = "a line came twice; the first counts"

TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
"""Lines that name the conversation, the best name first, and the field that does."""


class ClaudeCode:
    """See :class:`proxy.portable.programs.reading.Log`."""

    def __init__(self, warnings: Warnings) -> None:
        self._warnings, self._tree = warnings, TranscriptTree(warnings)
        self._answers: dict[str, str] = {}
        """The first line of each answer, by the id of the message."""
        self._titles: dict[str, str] = {}
        self._session = ""
        self._began: float | None = None
        self._before = self._last = ""
        """The previous line, and the last one with a message."""

    def add(self, fields: Fields, line: int) -> int:
        kind, id = text_in(fields, "type"), text_in(fields, "uuid")
        if kind in TITLES:
            self._titles[kind] = text_in(fields, TITLES[kind])
        elif kind == "last-prompt" and text_in(fields, "leafUuid") in self._tree:
            self._last = text_in(fields, "leafUuid")
        if not id:
            return 0
        if fields.get("isSidechain") is True:
            self._warnings.add(SIDE_CONVERSATIONS_SKIPPED, line)
            return 0
        if id in self._tree:
            self._warnings.add(DUPLICATE_LINES, line)
            return 0
        parent = self._parent(fields, line)
        self._before = id
        self._session = text_in(fields, "sessionId") or self._session
        if self._began is None:
            self._began = timestamp_in(fields, "timestamp")
        attachment = fields_in(fields, "attachment")
        if kind == "attachment" and _is_user_prompt(attachment):
            kind, fields = "user", {**fields, "message": {"content": attachment.get("prompt")}}
        return self._add_line(kind, id, parent, fields)

    def _parent(self, fields: Fields, line: int) -> str:
        parent = text_in(fields, "parentUuid") or text_in(fields, "logicalParentUuid")
        if not parent or parent in self._tree:
            return parent
        self._warnings.add(PARENT_MISSING, line)
        return self._before

    def _add_line(self, kind: str, id: str, parent: str, fields: Fields) -> int:
        message = fields_in(fields, "message")
        hidden = any(fields.get(name) is True for name in ("isMeta", "isCompactSummary"))
        if kind not in ("user", "assistant") or hidden or fields.get("isApiErrorMessage") is True:
            if hidden:
                self._warnings.add(PROGRAM_TEXT_SKIPPED)
            self._tree.add_entry(id, parent)
            return 0
        self._last = id
        at = timestamp_in(fields, "timestamp")
        if kind == "user":
            return self._add_user(id, parent, message.get("content"), at)
        return self._add_answer(id, parent, message, at)

    def _add_user(self, id: str, parent: str, content: object, at: float | None) -> int:
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        self._tree.add_entry(id, parent)
        size, parts = 0, []
        for block in filter(_is_object, blocks):
            result = call_or_result(block, at)
            if result is not None:
                size += self._tree.add_block(id, result)
            else:
                parts += list(self._user_parts(block))
        if not parts:
            return size
        return size + self._tree.add_user_message(id, parent, content_of(parts), at)

    def _user_parts(self, block: Fields) -> Iterator[Fields]:
        if text_in(block, "type") != "text":
            yield block
            return
        text = text_in(block, "text")
        user_text = typed_part(text).strip()
        if user_text != text.strip():
            self._warnings.add(PROGRAM_TEXT_SKIPPED)
        if user_text:
            yield {"type": "text", "text": user_text}

    def _add_answer(self, id: str, parent: str, message: Fields, at: float | None) -> int:
        first_id = self._answers.setdefault(text_in(message, "id") or id, id)
        if first_id == id:
            self._tree.add_entry(id, parent)
        else:
            self._tree.add_alias(id, first_id)
        return sum(self._add_block(id, block, at) for block in list_in(message, "content"))

    def _add_block(self, id: str, block: object, at: float | None) -> int:
        fields = block if isinstance(block, dict) else {}
        tool_block = call_or_result(fields, at)
        if tool_block is None and text_in(fields, "type").endswith("thinking"):
            self._warnings.add(THOUGHTS_SKIPPED)
            return 0
        return self._tree.add_block(id, tool_block or TextBlock(result_text([block]), at))

    def conversation(self) -> Conversation | None:
        messages = self._tree.messages(self._last)
        if not messages:
            return None
        title = next((self._titles[kind] for kind in TITLES if self._titles.get(kind)), None)
        return Conversation(messages, id=self._session or None, title=title, created_at=self._began)


def _is_user_prompt(attachment: Fields) -> bool:
    """Whether an attachment is a message that the user sent while an answer was made."""
    return (
        text_in(attachment, "type") == "queued_command"
        and text_in(attachment, "commandMode") in ("", "prompt")
        and text_in(fields_in(attachment, "origin"), "kind") in ("", "human")
    )


def _is_object(block: object) -> bool:
    return isinstance(block, dict)
