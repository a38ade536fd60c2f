"""Conversations that are lists of OpenAI's chat messages already.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from proxy.chat import jsontext
from proxy.chat.message import read_message
from proxy.portable.bounds import check_count, check_extent
from proxy.portable.piece import Conversation, Said
from proxy.portable.warnings import Warnings

SYSTEM = ("system", "developer")
ROLES = (*SYSTEM, "user", "assistant", "tool", "function")


def conversation_of(
    messages: Sequence[bytes], warnings: Warnings, line: int | None = None
) -> Conversation | None:
    """A conversation without branches; None if nothing is said in it.

    Its leading system messages are its instructions; later ones are left out.  Raises ValueError
    for what is no message.
    """
    check_count(len(messages))
    roles = [role_of(raw, index) for index, raw in enumerate(messages)]
    leading = len(list(takewhile(lambda role: role in SYSTEM, roles)))
    said = [
        raw
        for raw, role in zip(messages[leading:], roles[leading:], strict=True)
        if role not in SYSTEM
    ]
    if len(said) < len(messages) - leading:
        warnings.add("system messages in the midst of a conversation were left out", line)
    if not said:
        warnings.add("a conversation in which nothing is said was left out", line)
        return None
    return Conversation(
        said=tuple(Said(raw, parent=index - 1) for index, raw in enumerate(said)),
        system=tuple(messages[:leading]),
    )


def role_of(raw: bytes, index: int) -> str:
    """Raises ValueError."""
    check_extent(raw)
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
    """A message without what is there for training alone."""
    fields = _fields(raw)
    if "weight" not in fields:
        return raw
    return jsontext.join_fields({name: fields[name] for name in fields if name != "weight"})
