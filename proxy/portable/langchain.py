"""What LangChain's ``messages_to_dict`` gives, as JSON: a list of messages, or a list of such.

A message is ``{"type", "data": {"content", ...}}``.  Calls of tools are in ``data.tool_calls``
(name, args, id), in older files in ``data.additional_kwargs`` in OpenAI's own shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proxy.chat import jsontext
from proxy.portable.broken import Broken
from proxy.portable.langchain_content import content_of
from proxy.portable.piece import Piece
from proxy.portable.reading import Fields, fields_in, list_in, text_in
from proxy.portable.talk import conversation_of
from proxy.portable.warnings import Warnings
from proxy.portable.whole import Whole

ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
}


class LangChain(Whole):
    """See :class:`proxy.portable.source.Source`."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        super().__init__(most)
        self._warnings = warnings

    def finish(self) -> Iterator[Piece]:
        try:
            for messages in _lists(self.data):
                written = [_message(fields, index) for index, fields in enumerate(messages)]
                found = conversation_of(written, self._warnings)
                if found is not None:
                    yield found
        except ValueError as error:
            raise Broken(f"has {error}") from None


def _lists(raw: bytes) -> Iterator[Sequence[object]]:
    try:
        found = jsontext.decode(raw)
    except jsontext.UNREADABLE:
        found = None
    if not isinstance(found, list):
        raise ValueError("no list of messages")
    if found and all(isinstance(item, list) for item in found):
        yield from found
    else:
        yield found


def _message(value: object, index: int) -> bytes:
    """Raises ValueError."""
    fields = value if isinstance(value, dict) else {}
    kind, data = text_in(fields, "type"), fields_in(fields, "data")
    role = _role(kind, data)
    if role is None or "data" not in fields:
        raise ValueError(f"messages[{index}], which is not as messages_to_dict writes it")
    message: Fields = {"role": role, "content": content_of(data.get("content"))}
    if text_in(data, "name"):
        message["name"] = text_in(data, "name")
    if role == "assistant":
        message |= _calls(data)
    if role == "tool":
        message["tool_call_id"] = text_in(data, "tool_call_id")
    return jsontext.encode(message)


def _role(kind: str, data: Fields) -> str | None:
    if kind == "chat":
        return text_in(data, "role")
    return ROLES.get(kind.removesuffix("MessageChunk").lower())


def _calls(data: Fields) -> Fields:
    """The calls of an answer, as OpenAI has them."""
    more = fields_in(data, "additional_kwargs")
    calls = [_call(call) for call in list_in(data, "tool_calls") if isinstance(call, dict)]
    if calls or list_in(more, "tool_calls"):
        return {"tool_calls": calls or list_in(more, "tool_calls")}
    if isinstance(more.get("function_call"), dict):
        return {"function_call": more["function_call"]}
    return {}


def _call(call: Fields) -> Fields:
    arguments = jsontext.encode(call.get("args") or {}).decode()
    function = {"name": text_in(call, "name"), "arguments": arguments}
    return {"id": text_in(call, "id"), "type": "function", "function": function}
