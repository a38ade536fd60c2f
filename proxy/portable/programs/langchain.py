"""What LangChain's ``messages_to_dict`` gives, as JSON: a list of messages, or a list of such.

A message is ``{"type", "data": {"content", ...}}``.  Calls of tools are in ``data.tool_calls``
(name, args, id), in older files in ``data.additional_kwargs`` in OpenAI's own shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from proxy.chat import jsontext
from proxy.portable.check import Fields, fields_in, list_in, objects_in, text_in, value_of
from proxy.portable.messages import MessageLists
from proxy.portable.programs.content import content_of
from proxy.portable.source import ImportedPart

ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
}


class LangChain(MessageLists):
    """See :class:`proxy.portable.messages.MessageLists`."""

    def _add_item(self, item: bytes) -> Iterator[ImportedPart]:
        value = value_of(item, "no list of messages")
        if self._items.number == 1:
            self._has_conversations = isinstance(value, list)
        if not self._items.listed or self._has_conversations != isinstance(value, list):
            raise ValueError("no list of messages")
        if isinstance(value, list):
            yield from self._conversation([_message(each, n) for n, each in enumerate(value)])
        else:
            self._buffer.add(_message(value, self._items.number - 1))


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
    calls = [_call(call) for call in objects_in(data, "tool_calls")]
    if calls or list_in(more, "tool_calls"):
        return {"tool_calls": calls or list_in(more, "tool_calls")}
    if isinstance(more.get("function_call"), dict):
        return {"function_call": more["function_call"]}
    return {}


def _call(call: Fields) -> Fields:
    arguments = jsontext.encode(call.get("args") or {}).decode()
    function = {"name": text_in(call, "name"), "arguments": arguments}
    return {"id": text_in(call, "id"), "type": "function", "function": function}
