"""A chat completion request: parsed once, and changed by splicing its bytes.

Knows the request's shape and nothing of memory.  Requests that cannot be read are relayed
unchanged, for the upstream to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.cachemarks import without_marks
from proxy.chat.json_size import (
    MAX_CHOICES,
    MAX_MESSAGES,
    MAX_VALUES,
    has_more_text,
    has_more_values,
)
from proxy.chat.message import SYSTEM_ROLES, ChatMessage, read_message
from proxy.chat.models.limits import MAX_NAME
from proxy.chat.tools.calltext import forces_calls

MAX_TEXT = 8 * 1024 * 1024
"""Bytes of a request beside its media: about two million tokens.  Upstreams refuse more."""

NULL = bytes(jsontext.NULL)

UnreadReason = Literal["invalid_body", "too_many_parts", "too_much_text"]
"""Why a body is relayed unchanged."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A request's reference to stored state; chat completions have none.

    ``kept_upstream``: the upstream keeps the conversation, so that no messages may be injected;
    ``extends_instructions``: the request's own instructions may still be extended.
    ``previous`` is the id of the answer that it continues, ``references`` are ids that it sends
    instead of items, ``conversation`` is the id of its conversation.  ``background``: the answer
    will be fetched later.  ``sends_all``: its program always sends the whole conversation.
    ``stores``: the answer may be retrieved by its id later.
    """

    kept_upstream: bool = False
    extends_instructions: bool = False
    previous: str | None = None
    references: tuple[str, ...] = ()
    conversation: str | None = None
    background: bool = False
    sends_all: bool = False
    stores: bool = True

    @property
    def forbids_injection(self) -> bool:
        """Whether the upstream stores what is sent, so that nothing may be injected."""
        return self.kept_upstream or self.background


NO_STATE = State()


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a list of messages.

    ``fields`` are all fields as JSON; "messages" is empty and only keeps its position.
    ``leading`` is the first run of system or developer messages, ``messages`` all that follow.
    ``model`` and ``max_output`` (tokens) are None if the request does not set them; ``n`` is 1 to
    128.  ``has_own_system``: in its API system text is for one request, so it is neither
    remembered nor filled in.  ``instructions`` are such text in a field of its own.
    """

    fields: dict[str, bytes]
    leading: tuple[ChatMessage, ...]
    messages: tuple[ChatMessage, ...]
    model: str | None
    n: int
    max_output: int | None
    has_own_system: bool = False
    instructions: str = ""
    state: State = NO_STATE

    @property
    def system(self) -> tuple[bytes, ...]:
        """The JSON of the leading system messages."""
        return tuple(message.raw for message in self.leading)

    @property
    def system_record(self) -> tuple[bytes, ...]:
        """The leading system messages as they are recorded: without memory blocks and marks."""
        if self.has_own_system:
            return ()
        kept = (
            message for message in self.leading if message.chat_json is None or not message.blank
        )
        return tuple(without_marks(message.chat_json or message.raw) for message in kept)

    @property
    def wants_system(self) -> bool:
        """Whether the recorded system messages may be filled in."""
        return not self.leading and not self.has_own_system

    @property
    def system_text(self) -> str:
        """The text of the instructions and the leading system messages."""
        texts = (self.instructions, *(message.text for message in self.leading))
        return "\n".join(filter(None, texts))

    @property
    def last_user(self) -> ChatMessage | None:
        for message in reversed(self.messages):
            if message.role == "user":
                return message
        return None

    @property
    def forces_calls(self) -> bool:
        """Whether the model must call a tool, so that the calls may be its answer: ``calltext``."""
        legacy = field_of(self.fields, "function_call")
        return forces_calls(field_of(self.fields, "tool_choice"), legacy)

    @property
    def last_user_text(self) -> str:
        """The user's own text in the last user message; "" without one."""
        message = self.last_user
        return message.typed_text if message else ""

    def with_messages(self, parts: Iterable[bytes]) -> bytes:
        """The body with these messages (JSON, the leading ones included); other fields keep their
        order and bytes."""
        messages = jsontext.join_items(parts)
        return jsontext.join_fields({**self.fields, "messages": messages})


def read(body: bytes, max_inline_media_bytes: int) -> ChatRequest | UnreadReason:
    """Parse a body; returns why if it cannot be read.  Slow for large ones: use a thread."""
    result = read_fields(body)
    if not isinstance(result, tuple):
        return result
    fields, parts = result
    messages: list[ChatMessage] = []
    for part in parts:
        message = read_message(part, max_inline_media_bytes)
        if message is None:
            return "invalid_body"
        messages.append(message)
    # Text without spaces can look like media, so the parsed texts are counted as well.
    if len(body) > MAX_TEXT and sum(len(message.text) for message in messages) > MAX_TEXT:
        return "too_much_text"
    limit = positive_int(field_of(fields, "max_completion_tokens"))
    max_output = limit or positive_int(field_of(fields, "max_tokens"))
    n = min(positive_int(field_of(fields, "n")) or 1, MAX_CHOICES)
    return request_of(fields, messages, max_output, n)


def read_fields(
    body: bytes,
    items_field: str = "messages",
    split: Callable[[bytes], list[bytes]] = jsontext.items,
    alternatives: tuple[str, ...] = (),
) -> tuple[dict[str, bytes], list[bytes]] | UnreadReason:
    """The fields of a body and the items of the ``items_field`` one, or why they cannot be read.

    The listed field stays in place, empty.  ``split`` raises UNREADABLE.
    ``alternatives``: with one of these fields the listed one may be missing or null.
    """
    if has_more_values(MAX_VALUES, body):
        return "too_many_parts"
    if has_more_text(MAX_TEXT, body):
        return "too_much_text"
    if not jsontext.is_utf8(body):  # msgspec does not check fields that are not decoded
        return "invalid_body"
    try:
        fields = jsontext.fields(body)
        raw_items = fields.get(items_field, NULL)
        is_omitted = raw_items == NULL and any(field_of(fields, name) for name in alternatives)
        parts = [] if is_omitted else split(raw_items)
    except jsontext.UNREADABLE:
        return "invalid_body"
    if len(parts) > MAX_MESSAGES:
        return "too_many_parts"
    fields[items_field] = b""  # frees the copy; the key keeps the position
    return fields, parts


def request_of(
    fields: dict[str, bytes], messages: Sequence[ChatMessage], max_output: int | None, n: int = 1
) -> ChatRequest:
    """The request of a format whose system messages are the first of all."""
    leading = tuple(takewhile(lambda message: message.role in SYSTEM_ROLES, messages))
    return ChatRequest(
        fields=fields,
        leading=leading,
        messages=tuple(messages[len(leading) :]),
        model=model_of(fields),
        n=n,
        max_output=max_output,
    )


def model_of(fields: dict[str, bytes]) -> str | None:
    """The model that a request names; None if it names none."""
    model = field_of(fields, "model")
    return model[:MAX_NAME] if isinstance(model, str) else None


def field_of(fields: dict[str, bytes], name: str) -> object:
    """The value of a field; None if it is missing or unreadable."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return jsontext.value(raw)
    except jsontext.UNREADABLE:  # a number of thousands of digits, say: as good as absent
        return None


def positive_int(value: object) -> int | None:
    """A positive integer; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return None
    return value
