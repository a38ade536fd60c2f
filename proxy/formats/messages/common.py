"""A fast path for common messages, which convert to chat messages without loss.

They have only texts, then calls, or results that are text.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from proxy.chat import jsontext
from proxy.formats.messages.blocks import Json


class CommonText(msgspec.Struct, tag="text", forbid_unknown_fields=True):
    text: str
    cache_control: Any = None


class CommonToolUse(msgspec.Struct, tag="tool_use", forbid_unknown_fields=True):
    id: str
    name: str
    input: msgspec.Raw
    cache_control: Any = None


class CommonToolResult(msgspec.Struct, tag="tool_result", forbid_unknown_fields=True):
    tool_use_id: str
    content: str = ""
    cache_control: Any = None


CommonBlock = CommonText | CommonToolUse | CommonToolResult


class CommonMessage(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str | list[CommonBlock]

    @property
    def is_chat_message(self) -> bool:
        """Whether it is a valid chat message as it is."""
        return isinstance(self.content, str) or all(
            isinstance(block, CommonText) for block in self.content
        )


_decode = msgspec.json.Decoder(CommonMessage).decode


def read_common(raw: bytes) -> CommonMessage | None:
    """Parse a message (JSON); None if it is not a common one."""
    try:
        return _decode(raw)
    except jsontext.UNREADABLE:
        return None


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    function: _Function
    type: Literal["function"] = "function"


class _StoredCalls(msgspec.Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True):
    tool_calls: list[_Call]
    content: str | None = None


class _StoredResult(msgspec.Struct, tag_field="role", tag="tool", forbid_unknown_fields=True):
    tool_call_id: str
    content: str


_decode_stored = msgspec.json.Decoder(_StoredCalls | _StoredResult).decode
_decode_input = msgspec.json.Decoder(dict[str, Any]).decode


def read_stored_blocks(raw: bytes) -> tuple[str, list[Json]] | None:
    """Role and blocks of a stored message with calls, or of a result; None for any other."""
    try:
        message = _decode_stored(raw)
        if isinstance(message, _StoredResult):
            result: Json = {"type": "tool_result", "tool_use_id": message.tool_call_id}
            return "tool", [result | {"content": message.content} if message.content else result]
        text = message.content or ""
        uses: list[Json] = [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.function.name,
                "input": _decode_input(call.function.arguments),
            }
            for call in message.tool_calls
        ]
    except jsontext.UNREADABLE:
        return None
    return "assistant", [{"type": "text", "text": text}, *uses] if text.strip() else uses


def common_chat(role: str, blocks: list[CommonBlock]) -> Json | None:
    """The chat message for the blocks of a message, which must be one result, or texts and then
    calls; None for other blocks."""
    if len(blocks) == 1 and isinstance(blocks[0], CommonToolResult):
        result = blocks[0]
        return {"role": "tool", "tool_call_id": result.tool_use_id, "content": result.content}
    texts = [block.text for block in blocks if isinstance(block, CommonText)]
    uses = [block for block in blocks if isinstance(block, CommonToolUse)]
    are_texts_first = all(isinstance(block, CommonText) for block in blocks[: len(texts)])
    are_inputs_objects = all(bytes(use.input).startswith(b"{") for use in uses)
    if not (are_texts_first and are_inputs_objects and len(texts) + len(uses) == len(blocks)):
        return None
    content = texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]
    if not uses:
        return {"role": role, "content": content}
    return {"role": role, "content": content or None, "tool_calls": [*map(_call, uses)]}


def _call(use: CommonToolUse) -> Json:
    function = {"name": use.name, "arguments": bytes(use.input).decode()}
    return {"id": use.id, "type": "function", "function": function}
