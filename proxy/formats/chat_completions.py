"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import append_to_system, block_message, with_block
from proxy.chat.cachemarks import without_marks
from proxy.chat.message import SYSTEM_ROLES, ChatMessage, Piece, last_user_index
from proxy.chat.native import without_native
from proxy.chat.reply.events import end_signal, may_end
from proxy.chat.reply.reply import ReplyBuilder, read_reply
from proxy.chat.request import ChatRequest, read
from proxy.errors import RawHeaders
from proxy.formats.breakpoints import CacheMark, MessageKind, with_mark, with_openai_marks
from proxy.formats.format import Addition
from proxy.formats.native import has_no_native


class ChatCompletions:
    """See Format."""

    records = True
    has_signed_content = False
    supports_tools = True
    read, read_reply = staticmethod(read), staticmethod(read_reply)

    def is_side_request(self, request: ChatRequest, headers: RawHeaders) -> bool:
        return False

    def write(self, request: ChatRequest, addition: Addition) -> bytes:
        stored = addition.system
        system = jsontext.items(without_marks(stored)) if stored else request.system
        head = append_to_system(system, addition.head, separate=addition.separate)
        tail = _before_last_user(addition.messages, addition.tail, separate=addition.separate)
        return request.with_messages((*head, *tail))

    def with_cache_marks(self, body: bytes, model: str | None, key: str) -> bytes:
        return with_openai_marks(body, model, key, "messages", _kind, _add_mark)

    def without_signed(self, body: bytes, status: int, error: bytes) -> bytes | None:
        return None

    def read_stream(self) -> ChunkReader:
        return ChunkReader()


_KINDS: dict[str, MessageKind] = {
    **dict.fromkeys(SYSTEM_ROLES, "system"),
    "user": "question",
    **dict.fromkeys(("tool", "function"), "result"),
}
_MARKABLE = (*SYSTEM_ROLES, "user", "tool")
"""Roles whose texts accept a cache mark; assistant messages do not, for either provider."""


class _RoleField(msgspec.Struct):
    role: Any = None


_role_field = msgspec.json.Decoder(_RoleField)


def _role(raw: bytes) -> str:
    try:
        role = _role_field.decode(raw).role
    except jsontext.UNREADABLE:  # a lone surrogate: such a message gets no mark
        return ""
    return role if isinstance(role, str) else ""


def _kind(raw: bytes) -> MessageKind:
    return _KINDS.get(_role(raw), "other")


def _add_mark(raw: bytes, mark: CacheMark) -> bytes | None:
    """The message with a mark on its last text; see ``AddMark``."""
    return with_mark(raw, "content", mark, "text") if _role(raw) in _MARKABLE else None


class ChunkReader(ReplyBuilder):
    """See StreamReader."""

    may_end, end_signal = staticmethod(may_end), staticmethod(end_signal)


def _before_last_user(messages: Sequence[Piece], blocks: str, *, separate: bool) -> list[bytes]:
    """The JSON of the messages with memory blocks at the last user message, if there is one."""
    raws = [x if isinstance(x, bytes) else x.raw for x in messages]
    if not has_no_native(raws):
        raws = [x.raw if isinstance(x, ChatMessage) else without_native(x) for x in messages]
    at = last_user_index(messages) if blocks else None
    if at is None:
        return raws
    if separate:
        return [*raws[:at], block_message(blocks), *raws[at:]]
    return [*raws[:at], with_block(raws[at], blocks), *raws[at + 1 :]]
