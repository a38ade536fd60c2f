"""OpenAI's chat messages: a list of them, a list of conversations, one object with a list, or lines
of such objects, as models are trained with.  Pure.

A list is read item by item: what the first is, all are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import takewhile

from proxy.chat import jsontext
from proxy.chat.message import ROLES, SYSTEM_ROLES, read_message
from proxy.portable.check import check_count, check_text
from proxy.portable.source import (
    Broken,
    Conversation,
    ImportedMessage,
    ListSplitter,
    Piece,
    Splitter,
    Warnings,
)


def conversation_of(
    messages: Sequence[bytes], warnings: Warnings, line: int | None = None
) -> Conversation | None:
    """A conversation without branches; None if nothing is said in it.

    Its leading system messages are its instructions; later ones are left out.  Raises ValueError
    for what is no message.
    """
    check_count(len(messages))
    roles = [role_of(raw, index) for index, raw in enumerate(messages)]
    leading = len(list(takewhile(lambda role: role in SYSTEM_ROLES, roles)))
    said = [
        raw
        for raw, role in zip(messages[leading:], roles[leading:], strict=True)
        if role not in SYSTEM_ROLES
    ]
    if len(said) < len(messages) - leading:
        warnings.add("system messages in the midst of a conversation were left out", line)
    if not said:
        warnings.add("a conversation in which nothing is said was left out", line)
        return None
    return Conversation(
        said=tuple(ImportedMessage(raw, parent=index - 1) for index, raw in enumerate(said)),
        system=tuple(messages[:leading]),
    )


def role_of(raw: bytes, index: int) -> str:
    """Raises ValueError."""
    check_text(raw)
    message = read_message(raw)
    if message is None or message.role not in ROLES:
        raise ValueError(f"messages[{index}], whose role is none of: {', '.join(ROLES)}")
    return message.role


def messages_in(raw: bytes) -> list[bytes]:
    """The messages of an object that has a list of them.  Raises ValueError."""
    try:
        found = jsontext.items(jsontext.fields(raw).get("messages", b"null"))
    except jsontext.UNREADABLE:
        raise ValueError("no list of messages") from None
    return [_plain(message) for message in found]


def conversations_in(raw: bytes) -> Iterator[list[bytes]]:
    """The messages of each conversation in a text: a list of messages, an object with one, or a
    list of either.  Raises ValueError.
    """
    if raw.lstrip()[:1] == b"{":
        yield messages_in(raw)
        return
    try:
        items = jsontext.items(raw)
    except jsontext.UNREADABLE:
        raise ValueError("no list of messages") from None
    if items and items[0][:1] == b"[":
        for item in items:
            yield from conversations_in(item)
    elif items and is_conversation(items[0]):
        yield from map(messages_in, items)
    else:
        yield items


def is_conversation(item: bytes) -> bool:
    """An item of a list: is it a conversation, and not a message?"""
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
    """``most`` bounds them all, in bytes.  Raises ValueError."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self.messages: list[bytes] = []

    def add(self, message: bytes) -> None:
        self.messages.append(message)
        self._size += len(message)
        check_count(len(self.messages))
        if self._size > self._most:
            raise ValueError(f"a conversation of over {self._most} bytes")


class MessageLists(ABC):
    """See :class:`proxy.portable.source.ImportSource`; ``most`` bounds a conversation, in bytes."""

    def __init__(self, most: int, warnings: Warnings) -> None:
        self._items, self._one = ListSplitter(most), MessageBuffer(most)
        self._warnings = warnings
        self._several = False

    def feed(self, data: bytes) -> Iterator[Piece]:
        try:
            for item in self._items.feed(data):
                yield from self._take(item)
        except ValueError as error:
            raise Broken(f"has {error}") from None

    def finish(self) -> Iterator[Piece]:
        try:
            self._items.finish()
            if not self._several:
                yield from self._conversation(self._one.messages)
        except ValueError as error:
            raise Broken(f"has {error}") from None

    @abstractmethod
    def _take(self, item: bytes) -> Iterator[Piece]:
        """Keep a message, or give the conversations that an item is.  Raises ValueError."""

    def _conversation(self, messages: list[bytes]) -> Iterator[Piece]:
        found = conversation_of(messages, self._warnings)
        if found is not None:
            yield found


class Messages(MessageLists):
    """See :class:`proxy.portable.messages.MessageLists`."""

    def _take(self, item: bytes) -> Iterator[Piece]:
        if self._items.number == 1:
            self._several = not self._items.listed or is_conversation(item)
        if not self._several:
            self._one.add(item)
            return
        check_text(item)
        lists = conversations_in(item) if item[:1] == b"[" else [messages_in(item)]
        for messages in lists:
            yield from self._conversation(messages)


class ChatLines:
    """See :class:`proxy.portable.source.ImportSource`; ``limit`` bounds a line, in bytes."""

    def __init__(self, limit: int, warnings: Warnings) -> None:
        self._lines, self._warnings = Splitter(limit), warnings

    def feed(self, data: bytes) -> Iterator[Piece]:
        for raw in self._lines.feed(data):
            yield from self._conversation(raw)

    def finish(self) -> Iterator[Piece]:
        for raw in self._lines.finish():
            yield from self._conversation(raw)

    def _conversation(self, raw: bytes) -> Iterator[Piece]:
        number = self._lines.number
        try:
            check_text(raw)
            found = conversation_of(messages_in(raw), self._warnings, number)
        except ValueError as error:
            raise Broken(f"has {error}", number) from None
        if found is not None:
            yield found
