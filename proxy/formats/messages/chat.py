"""A message of the Messages API as the chat message that is stored, and back.  Pure.

What a chat message cannot say (thinking, server tools, citations, errors of tools, the order of
texts and calls) is in its member ``native``: it is there exactly where the way to a chat message
and back does not lead to the same blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.cachemarks import unmarked
from proxy.chat.canonical import legacy_id
from proxy.chat.jsontext import text_in
from proxy.chat.native import words_of
from proxy.formats.messages.blocks import (
    THINKING,
    Json,
    block_of,
    is_blank,
    lightened,
    line_of,
    part_of,
    text_block,
)
from proxy.formats.native import native_of, with_native

API = "messages"


def chat_of(role: str, blocks: Sequence[Json]) -> Json:
    """The chat message for blocks of one role; a result of a tool stands alone."""
    if len(blocks) == 1 and is_result(blocks[0]):
        return _result(blocks[0])
    calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
    beside = ("tool_use", *THINKING)
    said = [block for block in blocks if block.get("type") not in beside]
    content = _content([(part_of if role == "user" else line_of)(block) for block in said])
    if not calls:
        return {"role": role, "content": content}
    return {"role": role, "content": content or None, "tool_calls": calls}


def stored(chat: bytes, blocks: Sequence[Json], limit: int) -> bytes:
    """The chat message (JSON) with its blocks beside it where it does not say all of them.

    ``limit``: characters of base64 that are kept.
    """
    own = [unmarked(block) for block in blocks]
    if [_bare(block) for block in own] == [
        _bare(block) for block in blocks_of(jsontext.decode(chat))
    ]:
        return chat
    return with_native(chat, API, [jsontext.encode(lightened(block, limit)) for block in own])


def sent_back(raw: bytes) -> tuple[str, list[Json]]:
    """Role and blocks of a stored message (JSON), without texts that say nothing."""
    fields, parts = jsontext.decode(raw), native_of(raw, API)
    found = blocks_of(fields) if parts is None else [jsontext.decode(part) for part in parts]
    role = fields.get("role") if isinstance(fields, dict) else None
    kept = [block for block in found if isinstance(block, dict) and not is_blank(block)]
    return text_in(role), kept


def blocks_of(fields: object) -> list[Json]:
    """The blocks for a chat message, whichever API it came by."""
    if not isinstance(fields, dict):
        return []
    if fields.get("role") in ("tool", "function"):
        return [_result_block(fields)]
    said, refusal = _listed(fields.get("content")), fields.get("refusal")
    if not said:
        said = _listed(refusal if isinstance(refusal, str) else words_of(fields))
    return [*map(block_of, said), *_uses(fields)]


def is_result(block: Mapping[str, object]) -> bool:
    return block.get("type") == "tool_result"


def _content(parts: Sequence[Json]) -> object:
    """A content of these parts; a text alone is a string."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return list(parts) or ""


def _listed(content: object) -> list[object]:
    """A content as the list that it stands for."""
    if isinstance(content, list):
        return content
    return [content] if content else []


def _bare(block: object) -> object:
    """A block as it compares: what is null says nothing, nor does a tool's that it did not fail."""
    if not isinstance(block, dict):
        return block
    said = {key: value for key, value in block.items() if value is not None}
    if is_result(said):
        content = [text_block(x) if isinstance(x, str) else x for x in _listed(said.get("content"))]
        said |= {
            "content": [_bare(part) for part in content],
            "is_error": bool(said.get("is_error")),
        }
    return said


# Calls and results


def _call(block: Json) -> Json:
    arguments = jsontext.encode(block.get("input", {})).decode()
    function = {"name": text_in(block.get("name")), "arguments": arguments}
    return {"id": text_in(block.get("id")), "type": "function", "function": function}


def _uses(fields: Json) -> Iterator[Json]:
    """The calls of a chat message; a legacy one is known by its function's name."""
    calls, legacy = fields.get("tool_calls"), fields.get("function_call")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield _use(text_in(call.get("id")), call.get("function") or call.get("custom"))
    if isinstance(legacy, dict):
        yield _use(legacy_id(legacy.get("name")), legacy)


def _use(id: str, function: object) -> Json:
    said = function if isinstance(function, dict) else {}
    given = said.get("arguments", said.get("input"))
    name = text_in(said.get("name"))
    return {"type": "tool_use", "id": id, "name": name, "input": input_of(given)}


def input_of(arguments: object) -> Json:
    """The input that arguments are; what is no JSON object is a field of one."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = jsontext.shallow(arguments.encode()) if arguments.strip() else {}
        except jsontext.UNREADABLE:  # what a model wrote need not be JSON
            value = arguments
    return value if isinstance(value, dict) else {"input": value} if value is not None else {}


def _result(block: Json) -> Json:
    parts = [
        line_of(x) if isinstance(x, dict) else text_block(text_in(x))
        for x in _listed(block.get("content"))
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
    said = content if isinstance(content, str) else [block_of(x) for x in _listed(content)]
    return {"type": "tool_result", "tool_use_id": id, **({"content": said} if said else {})}
