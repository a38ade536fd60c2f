"""Converts messages of the Messages API to the chat messages that are stored, and back.  Pure.

What a chat message cannot express (thinking, server tools, citations, tool errors, the order of
texts and calls) is kept in its member ``native``, which it has exactly if the conversion to a chat
message and back would change its blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.cachemarks import without_marks_in_value
from proxy.chat.canonical import legacy_id
from proxy.chat.jsontext import text_in
from proxy.chat.native import transcript_of
from proxy.formats.messages.blocks import (
    THINKING,
    Json,
    block_from_part,
    is_blank,
    part_from_block,
    text_block,
    text_from_block,
    with_small_media,
)
from proxy.formats.native import native_of, with_native

API = "messages"


def chat_from_blocks(role: str, blocks: Sequence[Json]) -> Json:
    """The chat message for the blocks of a message; a tool's result must be the only block."""
    if len(blocks) == 1 and is_result(blocks[0]):
        return _tool_message(blocks[0])
    calls = [_tool_call(block) for block in blocks if block.get("type") == "tool_use"]
    separate_types = ("tool_use", *THINKING)
    to_part = part_from_block if role == "user" else text_from_block
    content = _content([to_part(x) for x in blocks if x.get("type") not in separate_types])
    if not calls:
        return {"role": role, "content": content}
    return {"role": role, "content": content or None, "tool_calls": calls}


def with_native_blocks(chat: bytes, blocks: Sequence[Json], limit: int) -> bytes:
    """The chat message (JSON) with ``blocks`` as its native form if it does not express them.

    ``limit``: base64 data with more characters is replaced.
    """
    unmarked = [without_marks_in_value(block) for block in blocks]
    if [_comparable(block) for block in unmarked] == [
        _comparable(block) for block in blocks_from_chat(jsontext.decode(chat))
    ]:
        return chat
    return with_native(
        chat, API, [jsontext.encode(with_small_media(block, limit)) for block in unmarked]
    )


def read_stored(raw: bytes) -> tuple[str, list[Json]]:
    """Role and blocks of a stored message (JSON), without blank texts."""
    fields, parts = jsontext.decode(raw), native_of(raw, API)
    blocks = blocks_from_chat(fields) if parts is None else map(jsontext.decode, parts)
    role = fields.get("role") if isinstance(fields, dict) else None
    visible = [block for block in blocks if isinstance(block, dict) and not is_blank(block)]
    return text_in(role), visible


def blocks_from_chat(fields: object) -> list[Json]:
    """The blocks for a decoded chat message, which may come from any API."""
    if not isinstance(fields, dict):
        return []
    if fields.get("role") in ("tool", "function"):
        return [_result_block(fields)]
    content, refusal = _as_list(fields.get("content")), fields.get("refusal")
    if not content:
        content = _as_list(refusal if isinstance(refusal, str) else transcript_of(fields))
    return [*map(block_from_part, content), *_tool_uses(fields)]


def is_result(block: Mapping[str, object]) -> bool:
    return block.get("type") == "tool_result"


def _content(parts: Sequence[Json]) -> object:
    """The content of a chat message; a single text is a string."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return list(parts) or ""


def _as_list(content: object) -> list[object]:
    """A content as a list; [] if it is empty."""
    if isinstance(content, list):
        return content
    return [content] if content else []


def _comparable(block: object) -> object:
    """The block in a form that is equal for equivalent blocks: without null fields, with the
    defaults of a tool's result."""
    if not isinstance(block, dict):
        return block
    fields = {key: value for key, value in block.items() if value is not None}
    if is_result(fields):
        content = [
            text_block(x) if isinstance(x, str) else x for x in _as_list(fields.get("content"))
        ]
        fields |= {
            "content": [_comparable(part) for part in content],
            "is_error": bool(fields.get("is_error")),
        }
    return fields


# Calls and results


def _tool_call(block: Json) -> Json:
    arguments = jsontext.encode(block.get("input", {})).decode()
    function = {"name": text_in(block.get("name")), "arguments": arguments}
    return {"id": text_in(block.get("id")), "type": "function", "function": function}


def _tool_uses(fields: Json) -> Iterator[Json]:
    """The ``tool_use`` blocks for a chat message's calls; a legacy call has no id of its own."""
    for call in jsontext.objects_in(fields.get("tool_calls")):
        yield _tool_use(text_in(call.get("id")), call.get("function") or call.get("custom"))
    legacy = fields.get("function_call")
    if isinstance(legacy, dict):
        yield _tool_use(legacy_id(legacy.get("name")), legacy)


def _tool_use(id: str, function: object) -> Json:
    fields = function if isinstance(function, dict) else {}
    arguments = fields.get("arguments", fields.get("input"))
    name = text_in(fields.get("name"))
    return {"type": "tool_use", "id": id, "name": name, "input": parse_input(arguments)}


def parse_input(arguments: object) -> Json:
    """The input for a call's arguments; anything but a JSON object is wrapped in one."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = jsontext.decode_shallow(arguments.encode()) if arguments.strip() else {}
        except jsontext.UNREADABLE:  # models may write invalid JSON
            value = arguments
    return value if isinstance(value, dict) else {"input": value} if value is not None else {}


def _tool_message(block: Json) -> Json:
    parts = [
        text_from_block(x) if isinstance(x, dict) else text_block(text_in(x))
        for x in _as_list(block.get("content"))
    ]
    return {
        "role": "tool",
        "tool_call_id": text_in(block.get("tool_use_id")),
        "content": _content(parts),
    }


def _result_block(fields: Json) -> Json:
    legacy = fields.get("role") == "function"
    id = legacy_id(fields.get("name")) if legacy else text_in(fields.get("tool_call_id"))
    content = fields.get("content")
    if not isinstance(content, str):
        content = [block_from_part(part) for part in _as_list(content)]
    return {"type": "tool_result", "tool_use_id": id, **({"content": content} if content else {})}
