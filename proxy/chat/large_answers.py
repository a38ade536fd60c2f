"""Reads the relevant fields of answers whose JSON has too many values to be parsed whole.

Parsing JSON blocks the event loop.  Its cost is in the number of values and not in the length: a
long text is cheap, a list of a million empty lists is not.  Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

import msgspec

from proxy.chat import jsontext
from proxy.chat.json_size import MAX_CHOICES
from proxy.chat.jsontext import NULL

MAX_VALUES = 100_000
"""Values that may be parsed at once: about 0.2 seconds on a busy machine."""


class _Message(msgspec.Struct):
    """The fields of a message that are read; others are skipped."""

    role: msgspec.Raw = NULL
    content: msgspec.Raw = NULL
    reasoning_content: msgspec.Raw = NULL
    reasoning: msgspec.Raw = NULL
    refusal: msgspec.Raw = NULL
    audio: msgspec.Raw = NULL
    function_call: msgspec.Raw = NULL
    tool_calls: msgspec.Raw = NULL


class _SlimChoice(msgspec.Struct, kw_only=True):
    message: _Message
    index: int | None = None
    finish_reason: str | None = None


class _DeltaChoice(_SlimChoice, kw_only=True):
    message: _Message = msgspec.field(name="delta")


C_co = TypeVar("C_co", bound=_SlimChoice, covariant=True)


class _SlimAnswer(msgspec.Struct, Generic[C_co], kw_only=True):
    choices: list[C_co]
    model: str | None = None
    usage: msgspec.Raw = NULL


MessageField = Literal["delta", "message"]

_DECODERS: dict[MessageField, Callable[[bytes], _SlimAnswer[_SlimChoice]]] = {
    "delta": msgspec.json.Decoder(_SlimAnswer[_DeltaChoice]).decode,
    "message": msgspec.json.Decoder(_SlimAnswer[_SlimChoice]).decode,
}


def may_have_many_values(raw: bytes, limit: int = MAX_VALUES) -> bool:
    """Whether a JSON text may have more than ``limit`` values; never False if it has."""
    return len(raw) > limit and max_value_count(raw) > limit


def max_value_count(raw: bytes) -> int:
    """An upper bound of the values of a JSON text: each is at the start or after one of these."""
    return 1 + raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def read_slim(
    raw: bytes, message_field: MessageField, limit: int = MAX_VALUES
) -> dict[str, object] | None:
    """Read an event (``delta``) or a JSON answer (``message``) without fields of too many values;
    None if it has an unusual shape.

    Texts of any length are included, and other fields as long as they have at most ``limit`` values
    together.
    """
    # Each choice has one of these, and texts have none: their quotes are escaped.
    if raw.count(b'"%b"' % message_field.encode()) > MAX_CHOICES:
        return None
    try:
        answer = _DECODERS[message_field](raw)
    except jsontext.UNREADABLE:  # an unusual shape, or no JSON at all
        return None
    budget = _ValueBudget(limit)
    choices = [
        {
            "index": position if choice.index is None else choice.index,
            "finish_reason": choice.finish_reason,
            message_field: budget.message_fields(choice.message),
        }
        for position, choice in enumerate(answer.choices)
    ]
    return {"choices": choices, "model": answer.model, "usage": budget.value(answer.usage)}


class _ValueBudget:
    """Decodes values until ``limit`` have been decoded in all."""

    def __init__(self, limit: int) -> None:
        self._remaining = limit

    def message_fields(self, message: _Message) -> dict[str, object]:
        fields = {key: self.value(getattr(message, key)) for key in message.__struct_fields__}
        return {key: value for key, value in fields.items() if value is not None}

    def value(self, raw: msgspec.Raw) -> object:
        text = bytes(raw)
        if not text.startswith(b'"'):
            size = max_value_count(text)
            if size > self._remaining:
                return None
            self._remaining -= size
        try:
            return jsontext.decode_shallow(text)
        except jsontext.UNREADABLE:  # nested too deeply
            return None


def has_few_values(value: object, limit: int = MAX_VALUES) -> bool:
    """Whether a value contains at most ``limit`` values; visits no more than that."""
    count, stack = 0, [value]
    while stack:
        node = stack.pop()
        items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        count += len(items)
        if count > limit:
            return False
        stack += [item for item in items if isinstance(item, (dict, list))]
    return True
