"""A conversation as the Messages API takes it.  Pure.

The API wants the roles to alternate, a person to speak first, and the results of calls to be the
beginning of what follows them; it refuses texts without text.  The client's own blocks keep their
bytes and their order, stored messages are made to fit.

Thinking goes back, with its signatures, only in the tool loop that is running: there the API wants
it, in older turns it is left out.  So is there what the upstream's own tools were asked and never
did: the API refuses it once somebody has said something else.
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
from proxy.formats.messages.ids import with_fitting_ids
from proxy.formats.messages.part import ASSISTANT, USER, Part, part_of_piece

_ENDING = re.compile(rb'"tool_use_id"\s*:\s*"([\w-]+)"')
"""What a client's own message says of the result of a tool."""


def messages_of(pieces: Sequence[Piece], tail: str, *, separate: bool) -> list[bytes]:
    """The JSON of the messages, with ``tail`` before the text of the last one of the user.

    ``separate``: in a block of its own.
    """
    parts = _from_user([*map(part_of_piece, pieces)])
    if any([part.raw is None for part in parts]):
        parts = _without_what_is_over(with_fitting_ids(parts))
        parts = [part for part in parts if part.raw is not None or part.blocks]
    sent = [(part.role, _raw(part)) for part in parts]
    at = max((at for at, part in enumerate(parts) if part.is_talk), default=None)
    if tail and at is not None:
        role, raw = sent[at]
        sent[at] = role, with_block(_in_blocks(raw) if separate else raw, tail)
    runs = groupby(sent, lambda each: each[0])
    return [message for role, run in runs for message in _joined(role, [raw for _, raw in run])]


def system_of(system: ChatMessage | None, head: str, *, separate: bool) -> bytes:
    """The JSON of the system text with ``head`` behind it."""
    if system is None:
        return jsontext.encode(head)
    raw = _in_blocks(system.raw) if separate else system.raw
    return jsontext.fields(with_block(raw, head, behind=True))["content"]


def _from_user(parts: list[Part]) -> list[Part]:
    """Without stored answers that no question precedes, unless the client goes on from them."""
    begins = next((at for at, part in enumerate(parts) if part.own or part.is_talk), 0)
    return parts if parts and parts[begins].result else parts[begins:]


def _without_what_is_over(parts: list[Part]) -> list[Part]:
    """Without stored thinking, and uses without results, of what was before the running loop."""
    begins = _loop_begins(parts)
    unended = _unended(parts)
    return [_past(part, unended) if at < begins else part for at, part in enumerate(parts)]


def _loop_begins(parts: Sequence[Part]) -> int:
    """Where the last message of the user begins in which there is no result."""
    found = at = 0
    for role, run in groupby(parts, lambda part: part.role):
        group = list(run)
        if role == USER and not any(part.result for part in group):
            found = at
        at += len(group)
    return found


def _unended(parts: Sequence[Part]) -> set[str]:
    """Ids of stored uses of the upstream's own tools that have no result anywhere."""
    blocks = [block for part in parts for block in part.blocks]
    uses = {str(block.get("id")) for block in blocks if _is_upstreams(block)}
    if not uses:
        return uses
    own = (found for part in parts if part.raw for found in _ENDING.findall(part.raw))
    return uses - {str(block.get("tool_use_id")) for block in blocks} - set(map(bytes.decode, own))


def _is_upstreams(block: Json) -> bool:
    return str(block.get("type")).endswith("_tool_use")


def _past(part: Part, unended: set[str]) -> Part:
    kept = tuple(block for block in part.blocks if not _is_over(block, unended))
    return part if len(kept) == len(part.blocks) else replace(part, blocks=kept)


def _is_over(block: Json, unended: set[str]) -> bool:
    if block.get("type") in THINKING:
        return True
    return bool(unended) and _is_upstreams(block) and str(block.get("id")) in unended


def _raw(part: Part) -> bytes:
    if part.raw is not None:
        return part.raw
    return jsontext.encode({"role": part.role, "content": _content(part.blocks)})


def _content(blocks: Sequence[Json]) -> object:
    """A text alone is a string."""
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def _joined(role: str, raws: list[bytes]) -> list[bytes]:
    """What stands together, as one message where roles have to alternate."""
    if len(raws) == 1 or role not in (USER, ASSISTANT):
        return raws
    fields = jsontext.fields(raws[0])
    blocks = [block for raw in raws for block in _blocks(jsontext.fields(raw)["content"])]
    return [jsontext.join_fields({**fields, "content": jsontext.join_items(blocks)})]


def _in_blocks(raw: bytes) -> bytes:
    """A message whose content is a list."""
    fields = jsontext.fields(raw)
    blocks = jsontext.join_items(_blocks(fields["content"]))
    return jsontext.join_fields({**fields, "content": blocks})


def _blocks(content: bytes) -> list[bytes]:
    if content.startswith(b"["):
        return jsontext.items(content)
    text = jsontext.decode(content)
    return [jsontext.encode(text_block(text))] if isinstance(text, str) and text else []
