"""The parts of which a prompt for the Messages API is composed.  Pure."""

from __future__ import annotations

import msgspec

from proxy.chat.message import ChatMessage, Piece
from proxy.formats.messages.blocks import Json
from proxy.formats.messages.chat import is_result, read_stored
from proxy.formats.messages.common import read_common, read_stored_blocks

USER, ASSISTANT = "user", "assistant"


class Part(msgspec.Struct, frozen=True, gc=False):
    """A message or a part of one, from the client or from the store.

    ``raw`` is its JSON; a stored one that must be converted has None, and ``blocks`` instead.
    ``is_result``: it has a tool's result.  ``calls`` are the ids of the calls in a client's part.
    """

    role: str
    is_result: bool
    from_client: bool
    raw: bytes | None = None
    blocks: tuple[Json, ...] = ()
    calls: tuple[str, ...] = ()

    @property
    def is_user_text(self) -> bool:
        """Whether it is from the user, and not a tool's result."""
        return self.role == USER and not self.is_result


def part_of_piece(piece: Piece) -> Part:
    if isinstance(piece, ChatMessage):
        is_tool_result = piece.answers is not None
        role = USER if is_tool_result else piece.role
        return Part(role, is_tool_result, from_client=True, raw=piece.raw, calls=piece.calls)
    common = read_common(piece)
    if common is not None and isinstance(common.content, str) and common.content.strip():
        return Part(common.role, False, from_client=False, raw=piece)
    role, blocks = read_stored_blocks(piece) or read_stored(piece)
    api_role = ASSISTANT if role == ASSISTANT else USER
    return Part(api_role, any(map(is_result, blocks)), from_client=False, blocks=tuple(blocks))
