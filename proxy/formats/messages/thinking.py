"""Thinking that the upstream does not take back.  Pure.

Newer models sign their thinking together with all that stood before it.  Memory puts in other
things from one request to the next, so that what a client resends may be refused: it is sent again
without any.

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
    """A request's body without the thinking of older turns, or where they have none without any;
    None if there is none.  Some models want that of the tool loop that is running."""
    if not any(kind in body for kind in _BYTES):
        return None
    fields = jsontext.fields(body)
    said = jsontext.items(fields["messages"])
    begins = max((at for at, message in enumerate(said) if _asks(message)), default=0)
    kept = [*_without_any(said[:begins]), *said[begins:]]
    if kept == said:
        kept = _without_any(said)
    if kept == said:
        return None
    return jsontext.join_fields({**fields, "messages": jsontext.join_items(kept)})


def _without_any(said: Iterable[bytes]) -> list[bytes]:
    return [message for each in said if (message := _without(each)) is not None]


def _asks(message: bytes) -> bool:
    """Is it the user's, and no answer to a call?"""
    fields = jsontext.fields(message)
    if jsontext.decode(fields.get("role", b"null")) != USER:
        return False
    content = fields.get("content", b"null")
    blocks = jsontext.items(content) if content.startswith(b"[") else []
    return not any(_kind(block) == "tool_result" for block in blocks)


def _without(message: bytes) -> bytes | None:
    """A message without thinking; None if it was nothing else."""
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
