"""LangChain's messages as OpenAI's JSON, and back.  Pure.

LangChain's own converters do the work.  Here is what they leave out, and what they stumble over:
calls whose arguments are no JSON object, and fields that may be missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    InvalidToolCall,
    convert_to_messages,
    convert_to_openai_messages,
)

Wire = dict[str, Any]

SYSTEM_ROLES = ("system", "developer")

_NEEDED: Mapping[str, Wire] = {"tool": {"tool_call_id": ""}, "function": {"name": ""}}
"""What LangChain's messages of a role cannot be without."""

_NO_CALL = "Its arguments are no JSON object, or it is no call of a function."


def to_openai(messages: Iterable[BaseMessage]) -> list[Wire]:
    """As a request carries them."""
    return [wire for message in messages for wire in _wires(message)]


def from_openai(wire: Mapping[str, Any]) -> BaseMessage:
    """Fields that LangChain has no place for are in ``additional_kwargs``."""
    calls = wire.get("tool_calls") or []
    fields = {"content": "", **_NEEDED.get(wire["role"], {}), **wire}
    fields["tool_calls"] = [call for call in calls if _is_readable(call)] if calls else None
    (message,) = convert_to_messages([fields])
    if isinstance(message, AIMessage):
        message.invalid_tool_calls = [_invalid(call) for call in calls if not _is_readable(call)]
    return message


def _wires(message: BaseMessage) -> list[Wire]:
    """One, and the results that a message carries within."""
    wires = convert_to_openai_messages([message])
    if isinstance(message, AIMessage):
        if message.invalid_tool_calls:
            calls = [_call(call) for call in message.invalid_tool_calls]
            wires[0]["tool_calls"] = [*wires[0].get("tool_calls", ()), *calls]
        if function_call := message.additional_kwargs.get("function_call"):
            wires[0]["function_call"] = function_call
    return wires


def _is_readable(call: Mapping[str, Any]) -> bool:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except ValueError:
            return False
    return isinstance(arguments, dict) and "id" in call and isinstance(function.get("name"), str)


def _invalid(call: Mapping[str, Any]) -> InvalidToolCall:
    function = call.get("function") or {}
    return InvalidToolCall(
        type="invalid_tool_call",
        id=call.get("id"),
        name=function.get("name"),
        args=function.get("arguments"),
        error=_NO_CALL,
    )


def _call(call: InvalidToolCall) -> Wire:
    function = {"name": call["name"] or "", "arguments": call["args"] or ""}
    return {"type": "function", "id": call["id"], "function": function}
