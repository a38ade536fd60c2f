"""A chat completion request, read once; its bytes are kept and spliced, never written anew.

Knows the request's shape and nothing of memory.  What cannot be read is not ours to judge: it goes
upstream as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.cachemarks import without_marks
from proxy.chat.extent import MAX_CHOICES, MAX_MESSAGES, MAX_VALUES, has_more_text, has_over
from proxy.chat.message import SYSTEM_ROLES, ChatMessage, read_message
from proxy.chat.tools.calltext import forces_calls

MAX_TEXT = 8 * 1024 * 1024
"""Bytes of a request beside its media: some two million tokens.  Upstreams refuse more, and what
they refuse is not recorded."""

Unread = Literal["invalid_body", "too_many_parts", "too_much_text"]
"""Why a body is passed on as it is."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says of a conversation that is kept somewhere: nothing, in chat completions.

    ``elsewhere``: the upstream keeps it, so that nothing may be put between the messages;
    ``instructs``: but beside them, for this request alone.
    ``previous`` is the id of the answer that it goes on from, ``references`` are the ids of what it
    names instead of sending it.  ``conversation`` is the id of the one that it belongs to.
    ``background``: the answer will be fetched later.  ``complete``: its program always sends all
    that it wants to be said.  ``stores``: it may be asked for by its id later.
    """

    elsewhere: bool = False
    instructs: bool = False
    previous: str | None = None
    references: tuple[str, ...] = ()
    conversation: str | None = None
    background: bool = False
    complete: bool = False
    stores: bool = True

    @property
    def upstreams(self) -> bool:
        """Must what is sent be stored upstream, so that nothing may be put into it?"""
        return self.elsewhere or self.background


NO_STATE = State()


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a list of messages.  ``fields`` are the others; "messages" has its place.

    ``leading`` is the first run of system or developer messages, ``messages`` all that follow.
    ``model`` is None and ``max_output`` (tokens) is None where the request does not say; ``n`` is
    1 to 128.  ``system_is_its_own``: its API has system text for one request alone, so that it is
    not remembered, and none is filled in.  ``instructions`` are such text beside the messages.
    """

    fields: dict[str, bytes]
    leading: tuple[ChatMessage, ...]
    messages: tuple[ChatMessage, ...]
    model: str | None
    stream: bool
    n: int
    max_output: int | None
    system_is_its_own: bool = False
    instructions: str = ""
    state: State = NO_STATE

    @property
    def system(self) -> tuple[bytes, ...]:
        """The JSON of the leading system messages."""
        return tuple(message.raw for message in self.leading)

    @property
    def system_record(self) -> tuple[bytes, ...]:
        """What is remembered of the leading system messages: no blocks of memory, no marks."""
        if self.system_is_its_own:
            return ()
        kept = (message for message in self.leading if message.said is None or not message.blank)
        return tuple(without_marks(message.said or message.raw) for message in kept)

    @property
    def wants_system(self) -> bool:
        """May the remembered system message be filled in?"""
        return not self.leading and not self.system_is_its_own

    @property
    def system_text(self) -> str:
        """The text of the instructions and the leading system messages."""
        said = (self.instructions, *(message.text for message in self.leading))
        return "\n".join(filter(None, said))

    @property
    def last_user(self) -> ChatMessage | None:
        """The last user message."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message
        return None

    @property
    def forces_calls(self) -> bool:
        """Must the model call a tool?  Then nobody may be there to answer: see ``calltext``."""
        legacy = field_of(self.fields, "function_call")
        return forces_calls(field_of(self.fields, "tool_choice"), legacy)

    @property
    def last_user_text(self) -> str:
        """The text of the last user message that is their own; "" without one."""
        said = self.last_user
        return said.own if said else ""

    def with_messages(self, parts: Iterable[bytes]) -> bytes:
        """The request with these messages instead (their JSON, the leading ones included).

        The other fields keep their order and their values' bytes.
        """
        messages = jsontext.join_items(parts)
        return jsontext.join_fields({**self.fields, "messages": messages})


def read(body: bytes, max_inline_media_bytes: int) -> ChatRequest | Unread:
    """A request from its body, or why there is none.

    Takes long for a large one: it belongs on a thread.
    """
    found = read_fields(body)
    if not isinstance(found, tuple):
        return found
    fields, parts = found
    messages: list[ChatMessage] = []
    for part in parts:
        message = read_message(part, max_inline_media_bytes)
        if message is None:
            return "invalid_body"
        messages.append(message)
    # A word can look like media, so what is left of them is counted once more.
    if len(body) > MAX_TEXT and sum(len(message.text) for message in messages) > MAX_TEXT:
        return "too_much_text"
    return _request(fields, messages)


def read_fields(
    body: bytes,
    listed: str = "messages",
    split: Callable[[bytes], list[bytes]] = jsontext.items,
) -> tuple[dict[str, bytes], list[bytes]] | Unread:
    """The fields of a body and the items of the one that is ``listed``, or why there are none.

    The listed field keeps its place among the others, and is empty.  ``split`` raises UNREADABLE.
    """
    if has_over(MAX_VALUES, body):
        return "too_many_parts"
    if has_more_text(MAX_TEXT, body):
        return "too_much_text"
    if not jsontext.is_utf8(body):  # a field that is only split off is not checked for it
        return "invalid_body"
    try:
        fields = jsontext.fields(body)
        parts = split(fields[listed])
    except (KeyError, *jsontext.UNREADABLE):  # nothing that memory could be put into
        return "invalid_body"
    if len(parts) > MAX_MESSAGES:
        return "too_many_parts"
    fields[listed] = b""  # not kept twice; its place among the fields counts
    return fields, parts


def _request(fields: dict[str, bytes], messages: list[ChatMessage]) -> ChatRequest:
    leading = tuple(takewhile(lambda message: message.role in SYSTEM_ROLES, messages))
    model = field_of(fields, "model")
    limit = count_of(field_of(fields, "max_completion_tokens"))
    return ChatRequest(
        fields=fields,
        leading=leading,
        messages=tuple(messages[len(leading) :]),
        model=model if isinstance(model, str) else None,
        stream=field_of(fields, "stream") is True,
        n=min(count_of(field_of(fields, "n")) or 1, MAX_CHOICES),
        max_output=limit or count_of(field_of(fields, "max_tokens")),
    )


def field_of(fields: dict[str, bytes], name: str) -> object:
    """The value of a field; None where there is none that can be read."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return jsontext.value(raw)
    except jsontext.UNREADABLE:  # a number of thousands of digits, say: as good as absent
        return None


def count_of(value: object) -> int | None:
    """A number of something, None where it is no positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return None
    return value
