"""What a conversation is made of on its way to the Messages API.  Pure."""

from __future__ import annotations

import msgspec

from proxy.chat.message import ChatMessage, Piece
from proxy.formats.messages.blocks import Json
from proxy.formats.messages.chat import is_result, sent_back
from proxy.formats.messages.common import read_common, read_stored_blocks

USER, ASSISTANT = "user", "assistant"


class Part(msgspec.Struct, frozen=True, gc=False):
    """A message or a part of one, of the client or a stored one.

    ``raw`` is its JSON, None of a stored one that is not sent as it is: it has ``blocks``.
    ``result``: it is what a tool said.  ``calls`` are the ids of a client's calls.
    """

    role: str
    result: bool
    own: bool
    raw: bytes | None = None
    blocks: tuple[Json, ...] = ()
    calls: tuple[str, ...] = ()

    @property
    def is_talk(self) -> bool:
        """Is it what a person says?"""
        return self.role == USER and not self.result


def part_of_piece(piece: Piece) -> Part:
    if isinstance(piece, ChatMessage):
        result = piece.answers is not None
        role = USER if result else piece.role
        return Part(role, result, own=True, raw=piece.raw, calls=piece.calls)
    common = read_common(piece)
    if common is not None and isinstance(common.content, str) and common.content.strip():
        return Part(common.role, False, own=False, raw=piece)
    role, blocks = read_stored_blocks(piece) or sent_back(piece)
    said_by = ASSISTANT if role == ASSISTANT else USER
    return Part(said_by, any(map(is_result, blocks)), own=False, blocks=tuple(blocks))
