"""OpenAI's chat messages: a list of them, a list of conversations, one object with a list, or lines
of such objects, as models are trained with.  Pure.

A list is read item by item; all items must be of the kind of the first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import takewhile

from proxy.chat import jsontext
from proxy.chat.message import ROLES, SYSTEM_ROLES, read_message
from proxy.portable.check import check_count, check_text
from proxy.portable.source import (
    Conversation,
    ImportedMessage,
    ImportedPart,
    InvalidFile,
    ListSplitter,
    Splitter,
    Warnings,
)

KNOWN = frozenset(
    {
        "role",
        "content",
        "name",
        "refusal",
        "audio",
        "annotations",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "weight",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "cache_control",
        "prompt_cache_breakpoint",
    }
)
"""Fields of a message that programs send.  Any other may be a time or an id, meant for us."""


def conversation_of(
    messages: Sequence[bytes], warnings: Warnings, line: int | None = None
) -> Conversation | None:
    """A conversation without branches; None if it has no messages.

    Its leading system messages are its instructions; later ones are left out.  Raises ValueError
    for anything but a message.
    """
    check_count(len(messages))
    for name in (name for raw in messages for name in _fields(raw) if name not in KNOWN):
        warnings.add(f'the field "{name[:50]}" of a message was not read, and stays in it', line)
    roles = [role_of(raw, index) for index, raw in enumerate(messages)]
    leading = len(list(takewhile(lambda role: role in SYSTEM_ROLES, roles)))
    others = [
        raw
        for raw, role in zip(messages[leading:], roles[leading:], strict=True)
        if role not in SYSTEM_ROLES
    ]
    if len(others) < len(messages) - leading:
        warnings.add("system messages in the midst of a conversation were left out", line)
    if not others:
        warnings.add("a conversation in which nothing is said was left out", line)
        return None
    return Conversation(
        messages=tuple(ImportedMessage(raw, parent=index - 1) for index, raw in enumerate(others)),
        system=tuple(messages[:leading]),
    )


def role_of(raw: bytes, index: int) -> str:
    """Raises ValueError."""
    check_text(raw)
    message = read_message(raw)
    if message is None or message.role not in ROLES:
        raise ValueError(f"messages[{index}], whose role is none of: {', '.join(ROLES)}")
    return message.role


def messages_in(raw: bytes, warnings: Warnings, line: int | None = None) -> list[bytes]:
    """The messages of an object that has a list of them.  Raises ValueError."""
    try:
        fields = jsontext.fields(raw)
        messages = jsontext.items(fields.pop("messages", b"null"))
    except jsontext.UNREADABLE:
        raise ValueError("no list of messages") from None
    for name in fields:
        warnings.add(f'the field "{name[:50]}" beside "messages" was left out', line)
    return [_plain(message) for message in messages]


def conversations_in(raw: bytes, warnings: Warnings) -> Iterator[list[bytes]]:
    """The messages of each conversation in a text: a list of messages, an object with one, or a
    list of either.  Raises ValueError.
    """
    if raw.lstrip()[:1] == b"{":
        yield messages_in(raw, warnings)
        return
    try:
        items = jsontext.items(raw)
    except jsontext.UNREADABLE:
        raise ValueError("no list of messages") from None
    if items and items[0][:1] == b"[":
        for item in items:
            yield from conversations_in(item, warnings)
    elif items and is_conversation(items[0]):
        yield from (messages_in(item, warnings) for item in items)
    else:
        yield items


def is_conversation(item: bytes) -> bool:
    """Whether an item of a list is a conversation, not a message."""
    return item[:1] == b"[" or "messages" in _fields(item)


def _fields(raw: bytes) -> dict[str, bytes]:
    try:
        return jsontext.fields(raw)
    except jsontext.UNREADABLE:
        return {}


def _plain(raw: bytes) -> bytes:
    """The message without ``weight``, which is only for training."""
    fields = _fields(raw)
    if "weight" not in fields:
        return raw
    return jsontext.join_fields({name: fields[name] for name in fields if name != "weight"})


class MessageBuffer:
    """Collects messages of at most ``max_bytes`` in all.  Raises ValueError."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._size = max_bytes, 0
        self.messages: list[bytes] = []

    def add(self, message: bytes) -> None:
        self.messages.append(message)
        self._size += len(message)
        check_count(len(self.messages))
        if self._size > self._max_bytes:
            raise ValueError(f"a conversation of over {self._max_bytes} bytes")


class MessageLists(ABC):
    """See :class:`proxy.portable.source.ImportSource`; ``max_bytes`` bounds a conversation."""

    def __init__(self, max_bytes: int, warnings: Warnings) -> None:
        self._items, self._buffer = ListSplitter(max_bytes), MessageBuffer(max_bytes)
        self._warnings = warnings
        self._has_conversations = False

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        try:
            for item in self._items.feed(data):
                yield from self._add_item(item)
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None

    def finish(self) -> Iterator[ImportedPart]:
        try:
            self._items.finish()
            if not self._has_conversations:
                yield from self._conversation(self._buffer.messages)
        except ValueError as error:
            raise InvalidFile(f"has {error}") from None

    @abstractmethod
    def _add_item(self, item: bytes) -> Iterator[ImportedPart]:
        """Keep an item that is a message, or return its conversations.  Raises ValueError."""

    def _conversation(self, messages: list[bytes]) -> Iterator[ImportedPart]:
        conversation = conversation_of(messages, self._warnings)
        if conversation is not None:
            yield conversation


class Messages(MessageLists):
    """See :class:`proxy.portable.messages.MessageLists`."""

    def _add_item(self, item: bytes) -> Iterator[ImportedPart]:
        if self._items.number == 1:
            self._has_conversations = not self._items.listed or is_conversation(item)
        if not self._has_conversations:
            self._buffer.add(item)
            return
        check_text(item)
        for messages in conversations_in(item, self._warnings):
            yield from self._conversation(messages)


class ChatLines:
    """See :class:`proxy.portable.source.ImportSource`; ``max_line_bytes`` bounds a line."""

    def __init__(self, max_line_bytes: int, warnings: Warnings) -> None:
        self._lines, self._warnings = Splitter(max_line_bytes), warnings

    def feed(self, data: bytes) -> Iterator[ImportedPart]:
        for raw in self._lines.feed(data):
            yield from self._conversation(raw)

    def finish(self) -> Iterator[ImportedPart]:
        for raw in self._lines.finish():
            yield from self._conversation(raw)

    def _conversation(self, raw: bytes) -> Iterator[ImportedPart]:
        number = self._lines.number
        try:
            check_text(raw)
            conversation = conversation_of(
                messages_in(raw, self._warnings, number), self._warnings, number
            )
        except ValueError as error:
            raise InvalidFile(f"has {error}", number) from None
        if conversation is not None:
            yield conversation
