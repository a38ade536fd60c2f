"""The tool calls of a message, for display.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from proxy.chat import jsontext


class DisplayedCall(NamedTuple):
    """``arguments`` as the model wrote them."""

    name: str
    arguments: str


def displayed_calls(message: object) -> Iterator[DisplayedCall]:
    """The calls of a decoded message of any shape, its legacy function call last."""
    fields = message if isinstance(message, dict) else {}
    listed, legacy = fields.get("tool_calls"), fields.get("function_call")
    for call in listed if isinstance(listed, list) else ():
        yield _displayed_call(_function(call))
    if legacy:
        yield _displayed_call(legacy if isinstance(legacy, dict) else {})


def _function(call: object) -> Mapping[str, object]:
    """The function or custom tool of a call; the call itself if it has neither."""
    fields = call if isinstance(call, dict) else {}
    inner = (fields.get("function"), fields.get("custom"), fields)
    return next(each for each in inner if isinstance(each, dict))


def _displayed_call(function: Mapping[str, object]) -> DisplayedCall:
    name, value = function.get("name"), function.get("arguments", function.get("input"))
    arguments = value if isinstance(value, str) else jsontext.encode(value or {}).decode()
    shown_name = name if isinstance(name, str) and name else "?"
    return DisplayedCall(jsontext.well_formed(shown_name), jsontext.well_formed(arguments))
