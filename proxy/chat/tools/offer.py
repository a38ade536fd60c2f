"""Adds memory's tools to a request beside the client's own.  Pure.

Knows OpenAI's format of tools, and which requests may get more tools without a change of what their
client has asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import JsonFields
from proxy.chat.request import ChatRequest

SAVE = "memory_save"
SEARCH = "memory_search"
NAMES = (SAVE, SEARCH)

PARAMETERS = {SAVE: "text", SEARCH: "query"}
"""The only parameter of each."""

MAX_TOOLS = 128
"""OpenAI's maximum for a request."""

_EXCLUSIVE = ("functions", "function_call", "audio", "prediction", "grammar")
"""With these fields no tools are offered: legacy tools, fields that upstreams refuse beside tools,
and fields that make answers which cannot be joined over several rounds."""

_REFUSALS = (400, 404, 405, 422, 500, 501)
_ABOUT_TOOLS = re.compile(rb"(?i)\btool|\bfunction[ _-]?call")

_TOOL_OPTIONS = ("tool_choice", "parallel_tool_calls")
"""Fields that OpenAI refuses without tools: ours must not make an invalid request valid."""


def _function(name: str, description: str, parameter_description: str) -> bytes:
    """A function tool (JSON) with the descriptions of it and of its parameter."""
    parameter = PARAMETERS[name]
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string", "description": parameter_description}},
        "required": [parameter],
        "additionalProperties": False,
    }
    function = {"name": name, "description": description, "parameters": schema}
    return jsontext.encode({"type": "function", "function": function})


_FUNCTIONS = {
    SAVE: _function(
        SAVE,
        "Keep something lasting about the user for later conversations. Call it when the user asks "
        "you to remember something, or tells something about themselves that will still matter "
        "later. Not for passing things, secrets, or what tools or documents say.",
        "One fact in one self-contained sentence, in the user's language.",
    ),
    SEARCH: _function(
        SEARCH,
        "Search what is remembered of the user: saved facts, and what was said in earlier "
        "conversations. Call it when the answer may depend on something that is not in this "
        "conversation.",
        "What to look for, in the words in which it may have been said.",
    ),
}


def may_offer(request: ChatRequest) -> bool:
    """Whether our tools may be added without a change of what the client has asked for.

    Not if the client forbids or demands calls: that is about its own tools.
    """
    fields = request.fields
    if request.n != 1 or any(_is_set(fields.get(name)) for name in _EXCLUSIVE):
        return False
    choice = fields.get("tool_choice")
    if _is_set(choice) and choice != b'"auto"':
        return False
    tools = client_tools_in(fields)
    if tools is None or len(tools) + len(NAMES) > MAX_TOOLS:
        return False
    return bool(tools) or not any(_is_set(fields.get(name)) for name in _TOOL_OPTIONS)


def refuses_tools(status: int, body: bytes) -> bool:
    """Whether an error says that the model, or its server, does not support tools."""
    return status in _REFUSALS and _ABOUT_TOOLS.search(body) is not None


def client_tools_in(fields: JsonFields) -> list[bytes] | None:
    """The client's tools in a request's fields; None if they are not a list."""
    raw = fields.get("tools", b"null")
    try:
        return jsontext.items(raw) if _is_set(raw) else []
    except jsontext.UNREADABLE:
        return None


def is_name_taken(request: ChatRequest) -> bool:
    """Whether the name of one of the client's tools is, or begins with, one of ours.

    Names may be streamed in pieces, and ours must be recognised as soon as it is complete.
    """
    return any(_name(tool).startswith(NAMES) for tool in client_tools_in(request.fields) or ())


def with_tools(fields: JsonFields, names: Iterable[str]) -> dict[str, bytes]:
    """A request's fields with our tools after the client's own."""
    ours = [_FUNCTIONS[name] for name in names]
    return {**fields, "tools": jsontext.join_items([*(client_tools_in(fields) or ()), *ours])}


class RoundRequests:
    """Builds the requests of further tool rounds from the first one.

    ``client_tools`` is the JSON of the client's own tools, None if it has none.
    """

    def __init__(self, first_request: bytes, client_tools: bytes | None) -> None:
        self._first_request, self._client_tools = first_request, client_tools
        self._messages: list[bytes] = []

    def add(self, message: bytes, results: Sequence[tuple[str, str]]) -> None:
        """Add an assistant message (JSON) and its calls' results, as pairs of id and text."""
        self._messages.append(message)
        self._messages += (
            jsontext.encode({"role": "tool", "tool_call_id": id, "content": text})
            for id, text in results
        )

    def body(self, *, offer_tools: bool) -> bytes:
        """The next request; ``offer_tools``: with our tools."""
        fields = jsontext.fields(self._first_request)
        messages = [*jsontext.items(fields["messages"]), *self._messages]
        fields["messages"] = jsontext.join_items(messages)
        return jsontext.join_fields(fields if offer_tools else self._without_memory_tools(fields))

    def request_without_tools(self) -> bytes:
        fields = jsontext.fields(self._first_request)
        return jsontext.join_fields(self._without_memory_tools(fields))

    def _without_memory_tools(self, fields: dict[str, bytes]) -> dict[str, bytes]:
        if self._client_tools is not None:
            return {**fields, "tools": self._client_tools}
        return {name: raw for name, raw in fields.items() if name != "tools"}


def _is_set(raw: bytes | None) -> bool:
    return raw is not None and raw != b"null"


class _Function(msgspec.Struct):
    name: str = ""


class _Tool(msgspec.Struct):
    function: _Function | None = None
    custom: _Function | None = None


_tool = msgspec.json.Decoder(_Tool)


def _name(raw: bytes) -> str:
    try:
        tool = _tool.decode(raw)
    except jsontext.UNREADABLE:  # no tool that could be called
        return ""
    called = tool.function or tool.custom
    return called.name if called else ""
