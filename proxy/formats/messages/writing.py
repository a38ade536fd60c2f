"""Writes the messages of a prompt for the Messages API.  Pure.

The API requires that roles alternate, that the first message is the user's, and that the results of
calls directly follow them; it refuses blank texts.  The client's own blocks keep their bytes and
order; stored messages are converted.

Stored thinking is sent back, with its signatures, only in the current tool loop, where the API
requires it.  Unanswered calls of the upstream's own tools are also left out of older turns, since
the API refuses them there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.blocks import with_block
from proxy.chat.message import ChatMessage, Piece
from proxy.formats.messages.blocks import THINKING, Json, text_block
from proxy.formats.messages.ids import with_valid_ids
from proxy.formats.messages.part import ASSISTANT, USER, Part, part_of_piece

_RESULT_ID = re.compile(rb'"tool_use_id"\s*:\s*"([\w-]+)"')
"""The id of a call in a client's own message with its result."""


def messages_of(pieces: Sequence[Piece], tail: str) -> list[bytes]:
    """The JSON of the messages, with ``tail`` before the text of the last user message.

    It is a block of its own, however the text is written: the client may have sent a list, and
    what is stored is a string.  Thinking is bound to the blocks before it.
    """
    parts = _from_first_user([*map(part_of_piece, pieces)])
    if any([part.raw is None for part in parts]):
        parts = _without_stale_blocks(with_valid_ids(parts))
        parts = [part for part in parts if part.raw is not None or part.blocks]
    raws = [(part.role, _raw(part)) for part in parts]
    at = max((at for at, part in enumerate(parts) if part.is_user_text), default=None)
    if tail and at is not None:
        role, raw = raws[at]
        raws[at] = role, with_block(_in_blocks(raw), tail)
    runs = groupby(raws, lambda each: each[0])
    return [message for role, run in runs for message in _joined(role, [raw for _, raw in run])]


def system_of(system: ChatMessage | None, head: str, *, separate: bool) -> bytes:
    """The JSON of the system text with ``head`` after it."""
    if system is None:
        return jsontext.encode(head)
    raw = _in_blocks(system.raw) if separate else system.raw
    return jsontext.fields(with_block(raw, head, after=True))["content"]


def _from_first_user(parts: list[Part]) -> list[Part]:
    """The parts without stored answers before the first user message, unless a client's tool
    results follow them."""
    start = next((at for at, part in enumerate(parts) if part.from_client or part.is_user_text), 0)
    return parts if parts and parts[start].is_result else parts[start:]


def _without_stale_blocks(parts: list[Part]) -> list[Part]:
    """Remove stored thinking and unanswered server calls from before the current tool loop."""
    loop_start = _loop_start(parts)
    unanswered = _unanswered_server_uses(parts)
    return [
        _without_stale(part, unanswered) if at < loop_start else part
        for at, part in enumerate(parts)
    ]


def _loop_start(parts: Sequence[Part]) -> int:
    """The index of the first part of the last user message without tool results."""
    start = index = 0
    for role, run in groupby(parts, lambda part: part.role):
        group = list(run)
        if role == USER and not any(part.is_result for part in group):
            start = index
        index += len(group)
    return start


def _unanswered_server_uses(parts: Sequence[Part]) -> set[str]:
    """Ids of stored calls of the upstream's own tools that have no result."""
    blocks = [block for part in parts for block in part.blocks]
    uses = {str(block.get("id")) for block in blocks if _is_server_use(block)}
    if not uses:
        return uses
    by_client = (id for part in parts if part.raw for id in _RESULT_ID.findall(part.raw))
    answered = {str(block.get("tool_use_id")) for block in blocks}
    return uses - answered - set(map(bytes.decode, by_client))


def _is_server_use(block: Json) -> bool:
    return str(block.get("type")).endswith("_tool_use")


def _without_stale(part: Part, unanswered: set[str]) -> Part:
    kept = tuple(block for block in part.blocks if not _is_stale(block, unanswered))
    return part if len(kept) == len(part.blocks) else replace(part, blocks=kept)


def _is_stale(block: Json, unanswered: set[str]) -> bool:
    if block.get("type") in THINKING:
        return True
    return bool(unanswered) and _is_server_use(block) and str(block.get("id")) in unanswered


def _raw(part: Part) -> bytes:
    if part.raw is not None:
        return part.raw
    return jsontext.encode({"role": part.role, "content": _content(part.blocks)})


def _content(blocks: Sequence[Json]) -> object:
    """The content of a message; a single text is a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _joined(role: str, raws: list[bytes]) -> list[bytes]:
    """Adjacent messages of one role, joined to one message if the role must alternate."""
    if len(raws) == 1 or role not in (USER, ASSISTANT):
        return raws
    fields = jsontext.fields(raws[0])
    blocks = [block for raw in raws for block in _blocks(jsontext.fields(raw)["content"])]
    return [jsontext.join_fields({**fields, "content": jsontext.join_items(blocks)})]


def _in_blocks(raw: bytes) -> bytes:
    """The message with its content as a list of blocks."""
    fields = jsontext.fields(raw)
    blocks = jsontext.join_items(_blocks(fields["content"]))
    return jsontext.join_fields({**fields, "content": blocks})


def _blocks(content: bytes) -> list[bytes]:
    if content.startswith(b"["):
        return jsontext.items(content)
    text = jsontext.decode(content)
    return [jsontext.encode(text_block(text))] if isinstance(text, str) and text else []
