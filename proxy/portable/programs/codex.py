"""A transcript of Codex, ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``.  Pure.

A line is ``{"timestamp", "type", "payload"}``: ``session_meta`` comes first, ``response_item`` is
an item of the Responses API, ``event_msg`` of the kind ``thread_rolled_back`` takes back the last
``num_turns`` of the user.  In files of before September 2025 the items stand in their lines as they
are, behind a line with the id of the session.  The source is openai/codex:
codex-rs/protocol/src/protocol.rs (RolloutLine, RolloutItem), codex-rs/protocol/src/models.rs
(ResponseItem) and codex-rs/rollout/src/policy.rs (what is written).
"""

from __future__ import annotations

from proxy.chat.message import SYSTEM_ROLES
from proxy.chat.typed import typed_part
from proxy.portable.check import Fields, fields_in, objects_in, text_in, timestamp_in
from proxy.portable.programs.blocks import PROGRAM_TEXT_SKIPPED, ToolResult, blocks_of
from proxy.portable.programs.claude_code import SIDE_CONVERSATIONS_SKIPPED
from proxy.portable.programs.content import content_of
from proxy.portable.programs.record import TranscriptTree
from proxy.portable.source import Conversation, Warnings


class Codex:
    """See :class:`proxy.portable.programs.reading.Log`."""

    def __init__(self, warnings: Warnings) -> None:
        self._warnings, self._tree = warnings, TranscriptTree(warnings)
        self._meta: Fields | None = None
        self._count = 0
        self._last = self._open = ""
        """The previous entry, and the answer that further items belong to, "" if none."""
        self._turn_starts: list[str] = []
        """The entry before each turn of the user, to return to on a rollback."""
        self._is_subagent = False

    def add(self, fields: Fields, line: int) -> int:
        kind, payload = text_in(fields, "type"), fields_in(fields, "payload")
        at = timestamp_in(fields, "timestamp")
        if "payload" not in fields:
            kind, payload = "response_item" if kind else "session_meta", fields
        if kind == "session_meta":
            self._begin(payload, line)
        elif kind == "compacted":
            self._warnings.add(PROGRAM_TEXT_SKIPPED)
        elif kind == "event_msg" and text_in(payload, "type") == "thread_rolled_back":
            self._roll_back(payload.get("num_turns"))
        elif kind == "response_item" and not self._is_subagent:
            return self._add_item(payload, at)
        return 0

    def _begin(self, meta: Fields, line: int) -> None:
        """Read the first metadata; a thread that continues another has that one's as well."""
        if self._meta is not None or "id" not in meta:
            return
        self._meta = {name: meta[name] for name in ("id", "timestamp") if name in meta}
        self._is_subagent = "subagent" in fields_in(meta, "source")
        if self._is_subagent:
            self._warnings.add(SIDE_CONVERSATIONS_SKIPPED, line)

    def _roll_back(self, turns: object) -> None:
        if isinstance(turns, int) and self._turn_starts and turns > 0:
            self._last = self._turn_starts[-turns:][0]
            del self._turn_starts[-turns:]
            self._open = ""

    def _add_item(self, item: Fields, at: float | None) -> int:
        role = text_in(item, "role")
        if role in SYSTEM_ROLES:
            self._warnings.add(PROGRAM_TEXT_SKIPPED)
            return 0
        if role == "user":
            return self._add_user(item, at)
        size = 0
        for block in blocks_of(item, at, self._warnings):
            if not self._open and not isinstance(block, ToolResult):
                self._open = self._new_id()
                self._tree.add_entry(self._open, self._last)
                self._last = self._open
            if self._open or (isinstance(block, ToolResult) and block.id):
                size += self._tree.add_block(self._open, block)
        return size

    def _add_user(self, item: Fields, at: float | None) -> int:
        parts = objects_in(item, "content")
        user_parts = [kept for part in parts if (kept := _without_program_text(part)) is not None]
        if user_parts != parts:
            self._warnings.add(PROGRAM_TEXT_SKIPPED)
        if not user_parts:
            return 0
        id_ = self._new_id()
        size = self._tree.add_user_message(
            id_, self._last, content_of([_plain(x) for x in user_parts]), at
        )
        self._turn_starts.append(self._last)
        self._last, self._open = id_, ""
        return size

    def _new_id(self) -> str:
        self._count += 1
        return f"#{self._count}"

    def conversation(self) -> Conversation | None:
        messages = self._tree.messages(self._last)
        if not messages:
            return None
        meta = self._meta or {}
        began = timestamp_in(meta, "timestamp")
        return Conversation(messages, id=text_in(meta, "id") or None, created_at=began)


def _without_program_text(part: Fields) -> Fields | None:
    """A part without what the program put in, None where that is all of it."""
    text = text_in(part, "text")
    user_text = typed_part(text)
    if user_text == text:
        return part
    return {**part, "text": user_text} if user_text.strip() else None


def _plain(part: Fields) -> Fields:
    """A part of a message as the chat API has it."""
    kind = text_in(part, "type").removeprefix("input_").removeprefix("output_")
    if kind == "image":
        return {"type": "image_url", "image_url": part.get("image_url")}
    return {**part, "type": kind}
