"""Finds the calls of memory's tools in an answer.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.chat.reply.answer import CUT_OFF, Choice, Reply
from proxy.chat.reply.reply import TEXTS
from proxy.chat.tools.offer import NAMES, PARAMETERS

MAX_ARGUMENTS = 8 * 1024
"""Bytes of a call's arguments."""

_REASONING_PREFIXES = ("reasoning", "thinking")
"""Prefixes of fields that some upstreams demand back within a tool loop, and only there."""


class MemoryCall(msgspec.Struct, frozen=True):
    """A call of one of memory's tools; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str

    def argument(self) -> str:
        """The only argument: the text or the query.  Raises ValueError with a message for the
        model."""
        name = PARAMETERS[self.name]
        if len(self.arguments) > MAX_ARGUMENTS or len(self.arguments.encode()) > MAX_ARGUMENTS:
            raise ValueError(f"the arguments are longer than {MAX_ARGUMENTS} bytes")
        try:
            decoded = jsontext.decode(self.arguments.encode())
        except jsontext.UNREADABLE:
            decoded = None
        value = decoded.get(name) if isinstance(decoded, dict) else None
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f'the arguments are not a JSON object with a text as "{name}"')
        return jsontext.well_formed(value).strip()


class MemoryCalls(msgspec.Struct, frozen=True):
    """A finished answer with calls of memory's tools.

    ``has_client_calls``: it calls the client's tools as well.  ``message`` is the answer (JSON) as
    the next request sends it back; ``usage`` is its usage (JSON).
    """

    calls: tuple[MemoryCall, ...]
    has_client_calls: bool
    message: bytes
    usage: bytes | None = None

    def texts(self) -> dict[str, str]:
        """The texts of the answer, by their fields."""
        body = jsontext.decode(self.message)
        texts = {key: body.get(key) for key in TEXTS} if isinstance(body, dict) else {}
        return {key: text for key, text in texts.items() if isinstance(text, str) and text}


def memory_calls(reply: Reply) -> MemoryCalls | None:
    """The calls of memory's tools; None if there are none, or they may be incomplete."""
    first = reply.choices[0] if reply.choices else None
    if first is None or reply.error or first.finish_reason in CUT_OFF:
        return None
    body = jsontext.decode(first.body)
    calls = body.get("tool_calls") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(calls, list):
        return None
    calls = list(_with_ids(calls))
    ours = tuple(_memory_call(call) for call in calls if _name(call) in NAMES)
    if not ours:
        return None
    message = {**body, **_reasoning_fields(first), "tool_calls": calls}
    return MemoryCalls(ours, len(ours) < len(calls), jsontext.encode(message), reply.usage)


def is_memory_call(call: bytes) -> bool:
    """Whether a tool call (JSON) is of one of memory's tools."""
    decoded = jsontext.decode(call)
    return isinstance(decoded, dict) and _name(decoded) in NAMES


def _reasoning_fields(choice: Choice) -> Mapping[str, object]:
    received = jsontext.decode(choice.wire) if choice.wire else {}
    if not isinstance(received, dict):
        return {}
    return {key: value for key, value in received.items() if key.startswith(_REASONING_PREFIXES)}


def _with_ids(calls: Sequence[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """The calls with unique ids: some upstreams send none, or the same for all."""
    used: set[object] = {""}
    for position, call in enumerate(calls):
        id = call.get("id")
        if not isinstance(id, str) or id in used:
            id = f"call_{position}"
        used.add(id)
        yield {**call, "id": id}


def _memory_call(call: Mapping[str, object]) -> MemoryCall:
    function = call["function"]
    assert isinstance(function, dict)  # it has a name
    return MemoryCall(str(call["id"]), function["name"], function.get("arguments") or "")


def _name(call: Mapping[str, object]) -> object:
    function = call.get("function")
    return function.get("name") if isinstance(function, dict) else None
