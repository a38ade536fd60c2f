"""Removes thinking from a request after the upstream has refused it.  Pure.

Newer models sign their thinking together with the prompt before it.  As memory changes that between
requests, an upstream may refuse the thinking that a client resends.

https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from proxy.chat import jsontext
from proxy.formats.messages.blocks import THINKING
from proxy.formats.messages.part import USER

_REFUSED = re.compile(
    rb"invalid .?.?(signature|data).?.? in .?.?(redacted_)?thinking"
    rb"|bound to a different|thinking.{0,40} blocks .{0,60}cannot be modified",
    re.IGNORECASE,
)
_BYTES = tuple(b'"%b"' % kind.encode() for kind in THINKING)


def refuses_thinking(status: int, error: bytes) -> bool:
    return status == 400 and _REFUSED.search(error) is not None


def without_thinking(body: bytes) -> bytes | None:
    """The body without the thinking of older turns, or if those have none, without any.

    None if there is no thinking.  Some models require that of the current tool loop.
    """
    if not any(kind in body for kind in _BYTES):
        return None
    fields = jsontext.fields(body)
    messages = jsontext.items(fields["messages"])
    start = max((at for at, message in enumerate(messages) if _is_user_text(message)), default=0)
    kept = [*_all_without_thinking(messages[:start]), *messages[start:]]
    if kept == messages:
        kept = _all_without_thinking(messages)
    if kept == messages:
        return None
    return jsontext.join_fields({**fields, "messages": jsontext.join_items(kept)})


def _all_without_thinking(messages: Iterable[bytes]) -> list[bytes]:
    return [raw for each in messages if (raw := _message_without_thinking(each)) is not None]


def _is_user_text(message: bytes) -> bool:
    """Whether a message is from the user and has no tool's result."""
    fields = jsontext.fields(message)
    if jsontext.decode(fields.get("role", b"null")) != USER:
        return False
    content = fields.get("content", b"null")
    blocks = jsontext.items(content) if content.startswith(b"[") else []
    return not any(_kind(block) == "tool_result" for block in blocks)


def _message_without_thinking(message: bytes) -> bytes | None:
    """The message without thinking; None if it has nothing else."""
    content = jsontext.fields(message).get("content", b"null")
    if not content.startswith(b"[") or not any(kind in content for kind in _BYTES):
        return message
    blocks = jsontext.items(content)
    kept = [block for block in blocks if _kind(block) not in THINKING]
    if kept == blocks:
        return message
    fields = {**jsontext.fields(message), "content": jsontext.join_items(kept)}
    return jsontext.join_fields(fields) if kept else None


def _kind(block: bytes) -> object:
    value = jsontext.decode(block)
    return value.get("type") if isinstance(value, dict) else None
