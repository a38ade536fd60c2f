"""A request of the Messages API, read once.

One message of it may be several of a conversation: results of tools stand alone, and what a person
says beside them is a message of its own.  They are put together again when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import may_have_blocks, without_blocks
from proxy.chat.extent import MAX_MESSAGES
from proxy.chat.message import ChatMessage, read_message
from proxy.chat.request import (
    MAX_TEXT,
    ChatRequest,
    State,
    Unread,
    count_of,
    field_of,
    model_of,
    read_fields,
)
from proxy.formats.apart import parted, runs_of
from proxy.formats.messages.blocks import THINKING, Json
from proxy.formats.messages.chat import chat_of, is_result, stored
from proxy.formats.messages.common import CommonMessage, CommonResult, common_chat, read_common

B = TypeVar("B")


def read_request(body: bytes, limit: int) -> ChatRequest | Unread:
    """A request from its body, or why there is none.  ``limit``: see ``stored``."""
    found = read_fields(body)
    if not isinstance(found, tuple):
        return found
    fields, items = found
    try:
        messages = tuple(_may_be(piece) for item in items for piece in read_pieces(item, limit))
        leading = _system(fields)
    except jsontext.UNREADABLE:  # nothing that could be taken apart
        return "invalid_body"
    if len(messages) > MAX_MESSAGES:
        return "too_many_parts"
    if sum(len(message.text) for message in messages) > MAX_TEXT:
        return "too_much_text"
    return ChatRequest(
        fields=fields,
        leading=leading,
        messages=messages,
        model=model_of(fields),
        stream=field_of(fields, "stream") is True,
        n=1,
        max_output=count_of(field_of(fields, "max_tokens")),
        system_is_its_own=True,
        state=State(elsewhere=_goes_on(field_of(fields, "thread"))),
    )


def _may_be(piece: ChatMessage) -> ChatMessage:
    """A message that may be several is told apart, where need be."""
    blocks = piece.raw.count(b'"type"') if piece.role == "assistant" else 0
    if blocks < 2:
        return piece
    return msgspec.structs.replace(piece, apart=parts_of, pieces=blocks)


def parts_of(message: ChatMessage) -> list[list[ChatMessage]]:
    """See Apart.  A client that leaves out calls and results puts what was said together."""
    fields = jsontext.fields(message.raw)

    def read(blocks: list[bytes]) -> ChatMessage:
        raw = jsontext.join_fields({**fields, "content": jsontext.join_items(blocks)})
        return next(read_pieces(raw, message.max_inline_media_bytes))

    content = fields.get("content", b"")
    blocks = jsontext.items(content) if content.startswith(b"[") else []
    return runs_of(_parted(blocks), read) if len(blocks) <= message.pieces else []


def _parted(blocks: Sequence[bytes]) -> list[list[bytes]]:
    """What may be messages of their own: each has one text, and no thought behind it."""
    kinds = [field_of(jsontext.fields(block), "type") for block in blocks]
    parts = parted(
        zip(kinds, blocks, strict=True),
        lambda told: told[0] == "text",
        lambda told, _: told[0] in ("text", *THINKING),
    )
    return [[block for _, block in part] for part in parts]


def _goes_on(thread: object) -> bool:
    """Is it more of a thread that the upstream keeps?  What memory put in would stay there.

    https://platform.claude.com/docs/en/build-with-claude/message-threads
    """
    return isinstance(thread, dict) and thread.get("type") == "continue"


def _system(fields: dict[str, bytes]) -> tuple[ChatMessage, ...]:
    """The system text as the message that it would be."""
    given = fields.get("system", b"null")
    value = jsontext.shallow(given)
    if value is None:
        return ()
    if not isinstance(value, str):
        _blocks(value)
    said = jsontext.join_fields({"role": b'"system"', "content": given})
    return (_read(said, len(said)),)


def read_pieces(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    """The messages of a conversation that one of a request is.  Raises UNREADABLE."""
    common = read_common(raw)
    if common is not None and common.is_text:
        yield _read(raw, limit)
    elif common is not None and not may_have_blocks(raw):
        yield from _common(raw, common, limit)
    else:
        yield from _any(raw, limit)


def _read(chat: bytes, limit: int) -> ChatMessage:
    message = read_message(chat, limit)
    if message is None:  # a number of thousands of digits, say
        raise ValueError("no message")
    return message


def _common(raw: bytes, message: CommonMessage, limit: int) -> Iterator[ChatMessage]:
    assert not isinstance(message.content, str)
    fields = jsontext.fields(raw)
    pairs = list(zip(jsontext.items(fields["content"]), message.content, strict=True))
    runs = list(_runs(pairs, lambda block: isinstance(block, CommonResult)))
    for run in runs:
        chat = common_chat(message.role, [block for _, block in run])
        part = _part(raw, fields, run, whole=len(runs) == 1)
        if chat is None:
            yield _piece(part, message.role, _blocks([jsontext.shallow(x) for x, _ in run]), limit)
        else:
            said = jsontext.encode(chat)
            yield msgspec.structs.replace(_read(said, limit), raw=part, said=said)


def _any(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    fields = jsontext.fields(raw)
    role, content = field_of(fields, "role"), fields.get("content", b"null")
    if not isinstance(role, str):
        raise ValueError("no role")
    if not content.startswith(b"["):
        text = jsontext.decode(content)
        if not isinstance(text, str):
            raise ValueError("no content")
        yield _piece(raw, role, [{"type": "text", "text": text}], limit)
        return
    blocks = list(zip(jsontext.items(content), _blocks(jsontext.shallow(content)), strict=True))
    runs = list(_runs(blocks, is_result))
    for run in runs:
        part = _part(raw, fields, run, whole=len(runs) == 1)
        yield _piece(part, role, [block for _, block in run], limit)


def _part(
    raw: bytes, fields: dict[str, bytes], run: Sequence[tuple[bytes, object]], *, whole: bool
) -> bytes:
    """The JSON of a message with a run of its blocks; itself where these are the whole of it."""
    if whole:
        return raw
    return jsontext.join_fields({**fields, "content": jsontext.join_items([x for x, _ in run])})


def _runs(
    blocks: list[tuple[bytes, B]], is_result: Callable[[B], bool]
) -> Iterator[list[tuple[bytes, B]]]:
    """Each result by itself, and what stands between them; an empty content is one run."""
    if not blocks:
        yield []
    for results, run in groupby(blocks, key=lambda block: is_result(block[1])):
        found = list(run)
        yield from ([block] for block in found) if results else (found,)


def _blocks(value: object) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise ValueError("no blocks")
    return value


def _piece(raw: bytes, role: str, blocks: list[Json], limit: int) -> ChatMessage:
    if may_have_blocks(raw):
        blocks = _without_memory(raw, blocks)
    message = _read(jsontext.encode(chat_of(role, blocks)), limit)
    said = stored(message.said or message.raw, blocks, limit)
    return msgspec.structs.replace(message, raw=raw, said=said)


def _without_memory(raw: bytes, blocks: list[Json]) -> list[Json]:
    """The blocks as they would be without what memory had put in."""
    said = without_blocks(raw)
    if said is raw:
        return blocks
    content = jsontext.decode(jsontext.fields(said)["content"])
    return [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content)
