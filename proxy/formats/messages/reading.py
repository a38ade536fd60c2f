"""A request of the Messages API, read once.

One message of it may be several of a conversation: results of tools stand alone, and what a person
says beside them is a message of its own.  They are put together again when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import may_have_blocks, without_blocks
from proxy.chat.extent import MAX_MESSAGES
from proxy.chat.message import ChatMessage, read_message
from proxy.chat.request import MAX_TEXT, ChatRequest, State, Unread, count_of, field_of, read_fields
from proxy.formats.messages.blocks import Json
from proxy.formats.messages.chat import chat_of, is_result, stored


class _TextMessage(msgspec.Struct, forbid_unknown_fields=True):
    """The common shape, which is that of a chat message."""

    role: Literal["user", "assistant"]
    content: str


_plain = msgspec.json.Decoder(_TextMessage)


def read_request(body: bytes, limit: int) -> ChatRequest | Unread:
    """A request from its body, or why there is none.  ``limit``: see ``stored``."""
    found = read_fields(body)
    if not isinstance(found, tuple):
        return found
    fields, items = found
    try:
        messages = tuple(piece for item in items for piece in read_pieces(item, limit))
        leading = _system(fields)
    except jsontext.UNREADABLE:  # nothing that could be taken apart
        return "invalid_body"
    if len(messages) > MAX_MESSAGES:
        return "too_many_parts"
    if sum(len(message.text) for message in messages) > MAX_TEXT:
        return "too_much_text"
    model = field_of(fields, "model")
    return ChatRequest(
        fields=fields,
        leading=leading,
        messages=messages,
        model=model if isinstance(model, str) else None,
        stream=field_of(fields, "stream") is True,
        n=1,
        max_output=count_of(field_of(fields, "max_tokens")),
        system_is_its_own=True,
        state=State(elsewhere=_goes_on(field_of(fields, "thread"))),
    )


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
    message = read_message(jsontext.join_fields({"role": b'"system"', "content": given}))
    return () if message is None else (message,)


def read_pieces(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    """The messages of a conversation that one of a request is.  Raises UNREADABLE."""
    try:
        _plain.decode(raw)
    except jsontext.UNREADABLE:  # another shape
        yield from _any(raw, limit)
        return
    message = read_message(raw, limit)
    assert message is not None  # it is an object
    yield message


def _any(raw: bytes, limit: int) -> Iterator[ChatMessage]:
    fields = jsontext.fields(raw)
    role, content = (
        jsontext.decode(fields["role"]) if "role" in fields else None,
        fields.get("content"),
    )
    if not isinstance(role, str) or content is None:
        raise ValueError("no message")
    if not content.startswith(b"["):
        text = jsontext.decode(content)
        if not isinstance(text, str):
            raise ValueError("no content")
        yield _piece(raw, role, [{"type": "text", "text": text}], limit)
        return
    blocks = list(zip(jsontext.items(content), _blocks(jsontext.shallow(content)), strict=True))
    runs = list(_runs(blocks))
    for run in runs:
        own = jsontext.join_items([item for item, _ in run])
        part = raw if len(runs) == 1 else jsontext.join_fields({**fields, "content": own})
        yield _piece(part, role, [block for _, block in run], limit)


Block = tuple[bytes, Json]


def _runs(blocks: list[Block]) -> Iterator[list[Block]]:
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
        raw, blocks = raw, _without_memory(raw, blocks)
    message = read_message(jsontext.encode(chat_of(role, blocks)), limit)
    assert message is not None  # it is an object
    said = stored(message.said or message.raw, blocks, limit)
    return msgspec.structs.replace(message, raw=raw, said=said)


def _without_memory(raw: bytes, blocks: list[Json]) -> list[Json]:
    """The blocks as they would be without what memory had put in."""
    said = without_blocks(raw)
    if said is raw:
        return blocks
    content = jsontext.decode(jsontext.fields(said)["content"])
    return [{"type": "text", "text": content}] if isinstance(content, str) else _blocks(content)
