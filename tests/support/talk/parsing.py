"""A chat request from its body, where a test knows that it is one."""

from __future__ import annotations

from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.chat.request import ChatRequest, read


def parse(body: bytes, max_inline_media_bytes: int = MAX_INLINE_MEDIA_BYTES) -> ChatRequest | None:
    """None if it is none."""
    found = read(body, max_inline_media_bytes)
    return found if isinstance(found, ChatRequest) else None
