"""Parses a request of the Messages API.

One message of it may become several chat messages: each tool result is one, and so is the user's
text beside them.  They are joined again when a request is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import may_have_blocks, without_blocks
from proxy.chat.json_size import MAX_MESSAGES
from proxy.chat.message import ChatMessage, read_message
from proxy.chat.request import (
    MAX_TEXT,
    ChatRequest,
    State,
    UnreadReason,
    field_of,
    model_of,
    positive_int,
    read_fields,
)
from proxy.formats.joined_answers import candidate_messages, split_answers
from proxy.formats.messages.blocks import THINKING, Json
from proxy.formats.messages.chat import chat_from_blocks, is_result, with_native_blocks
from proxy.formats.messages.common import CommonMessage, CommonToolResult, common_chat, read_common

B = TypeVar("B")


def read_request(body: bytes, limit: int) -> ChatRequest | UnreadReason:
    """Parse a body; returns why if it cannot be read.  ``limit``: see ``with_native_blocks``."""
    result = read_fields(body)
    if not isinstance(result, tuple):
        return result
    fields, items = result
    try:
        messages = tuple(
            _with_splitter(piece) for item in items for piece in read_messages(item, limit)
        )
        leading = _system(fields)
    except jsontext.UNREADABLE:  # not a list of messages
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
        n=1,
        max_output=positive_int(field_of(fields, "max_tokens")),
        has_own_system=True,
        state=State(kept_upstream=_continues_thread(field_of(fields, "thread"))),
    )


def _with_splitter(piece: ChatMessage) -> ChatMessage:
    """The message with a function that splits it, if a client may have joined several answers."""
    blocks = piece.raw.count(b'"type"') if piece.role == "assistant" else 0
    if blocks < 2:
        return piece
    return msgspec.structs.replace(piece, splitter=split_message, max_parts=blocks)


def split_message(message: ChatMessage) -> list[list[ChatMessage]]:
    """See Splitter.  Clients that omit calls and results join the answers around them."""
    fields = jsontext.fields(message.raw)

    def read(blocks: list[bytes]) -> ChatMessage:
        raw = jsontext.join_fields({**fields, "content": jsontext.join_items(blocks)})
        return next(read_messages(raw, message.max_inline_media_bytes))

    content = fields.get("content", b"")
    blocks = jsontext.items(content) if content.startswith(b"[") else []
    return (
        candidate_messages(_split_answers(blocks), read) if len(blocks) <= message.max_parts else []
    )


def _split_answers(blocks: Sequence[bytes]) -> list[list[bytes]]:
    """Split blocks into parts that may be answers: each has one text, and no thinking after it."""
    kinds = [field_of(jsontext.fields(block), "type") for block in blocks]
    parts = split_answers(
        zip(kinds, blocks, strict=True),
        lambda pair: pair[0] == "text",
        lambda pair, _: pair[0] in ("text", *THINKING),
    )
    return [[block for _, block in part] for part in parts]


def _continues_thread(thread: object) -> bool:
    """Whether a request continues a thread that the upstream stores: injected memory would stay
    in it.

    https://platform.claude.com/docs/en/build-with-claude/message-threads
    """
    return isinstance(thread, dict) and thread.get("type") == "continue"


def _system(fields: dict[str, bytes]) -> tuple[ChatMessage, ...]:
    """The system text as a chat message, () without one."""
    raw = fields.get("system", b"null")
    value = jsontext.decode_shallow(raw)
    if value is None:
        return ()
    if not isinstance(value, str):
        _blocks(value)
    message = jsontext.join_fields({"role": b'"system"', "content": raw})
    return (_read(message, len(message)),)


def read_messages(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    """The chat messages for a message (JSON) of a request.  Raises UNREADABLE."""
    common = read_common(raw)
    if common is not None and common.is_chat_message:
        yield _read(raw, limit)
    elif common is not None and not may_have_blocks(raw):
        yield from _read_common_blocks(raw, common, limit)
    else:
        yield from _read_any(raw, limit)


def _read(chat: bytes, limit: int) -> ChatMessage:
    message = read_message(chat, limit)
    if message is None:  # for example a number with thousands of digits
        raise ValueError("no message")
    return message


def _read_common_blocks(raw: bytes, message: CommonMessage, limit: int) -> Iterator[ChatMessage]:
    assert not isinstance(message.content, str)
    fields = jsontext.fields(raw)
    pairs = list(zip(jsontext.items(fields["content"]), message.content, strict=True))
    runs = list(_runs(pairs, lambda block: isinstance(block, CommonToolResult)))
    for run in runs:
        chat = common_chat(message.role, [block for _, block in run])
        part = _part(raw, fields, run, whole=len(runs) == 1)
        if chat is None:
            yield _from_blocks(
                part, message.role, _blocks([jsontext.decode_shallow(x) for x, _ in run]), limit
            )
        else:
            chat_json = jsontext.encode(chat)
            yield msgspec.structs.replace(_read(chat_json, limit), raw=part, chat_json=chat_json)


def _read_any(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    fields = jsontext.fields(raw)
    role, content = field_of(fields, "role"), fields.get("content", b"null")
    if not isinstance(role, str):
        raise ValueError("no role")
    if not content.startswith(b"["):
        text = jsontext.decode(content)
        if not isinstance(text, str):
            raise ValueError("no content")
        yield _from_blocks(raw, role, [{"type": "text", "text": text}], limit)
        return
    blocks = list(
        zip(jsontext.items(content), _blocks(jsontext.decode_shallow(content)), strict=True)
    )
    runs = list(_runs(blocks, is_result))
    for run in runs:
        part = _part(raw, fields, run, whole=len(runs) == 1)
        yield _from_blocks(part, role, [block for _, block in run], limit)


def _part(
    raw: bytes, fields: dict[str, bytes], run: Sequence[tuple[bytes, object]], *, whole: bool
) -> bytes:
    """The message with only a run of its blocks; ``raw`` itself if that is the ``whole``."""
    if whole:
        return raw
    return jsontext.join_fields({**fields, "content": jsontext.join_items([x for x, _ in run])})


def _runs(
    blocks: list[tuple[bytes, B]], is_result: Callable[[B], bool]
) -> Iterator[list[tuple[bytes, B]]]:
    """Split blocks into runs: each result alone, and those between results together.

    An empty content is one empty run.
    """
    if not blocks:
        yield []
    for results, run in groupby(blocks, key=lambda block: is_result(block[1])):
        run_blocks = list(run)
        yield from ([block] for block in run_blocks) if results else (run_blocks,)


def _blocks(value: object) -> list[Json]:
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise ValueError("no blocks")
    return value


def _from_blocks(raw: bytes, role: str, blocks: list[Json], limit: int) -> ChatMessage:
    if may_have_blocks(raw):
        blocks = _without_memory(raw, blocks)
    message = _read(jsontext.encode(chat_from_blocks(role, blocks)), limit)
    chat_json = with_native_blocks(message.chat_json or message.raw, blocks, limit)
    return msgspec.structs.replace(message, raw=raw, chat_json=chat_json)


def _without_memory(raw: bytes, blocks: list[Json]) -> list[Json]:
    clean = without_blocks(raw)
    if clean is raw:
        return blocks
    content = jsontext.decode(jsontext.fields(clean)["content"])
    return [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content)
