"""Converts messages of an import to a commit.  Pure, and slow for many: run it in a thread.

An import is one exchange: all of it or nothing.  Its leading system messages become the session's;
later ones are not recorded.  Its answers count as answers of an upstream, so that a client which
resends them can edit and regenerate.
"""

from __future__ import annotations

from itertools import takewhile

import msgspec

from proxy.chat.json_size import MAX_MESSAGES
from proxy.chat.jsontext import UNREADABLE, items, join_items
from proxy.chat.message import ROLES, SYSTEM_ROLES, ChatMessage, read_message
from proxy.memory.model import Commit, Draft, Exchange, Injection, Snapshot, WorkRequest, message_id
from proxy.memory.recording.commit import Count
from proxy.memory_api.conversations.checking import check_message
from proxy.memory_api.fields import bytes_of, invalid
from proxy.memory_api.shapes.messages import NewMessages
from proxy.portable.session_conversion import card_of


class Import(msgspec.Struct, frozen=True):
    """What is imported.  ``times`` are when the messages ``messages`` were made, Unix seconds."""

    system: tuple[bytes, ...]
    messages: tuple[ChatMessage, ...]
    times: tuple[float, ...]
    user: str | None = None


def read_import(new: NewMessages, now: float, max_inline_media_bytes: int) -> Import:
    """Read the messages of an import.  Raises ProxyError 400, with ``param`` naming the item that
    is wrong."""
    messages = _messages(bytes_of(new.messages), max_inline_media_bytes)
    times = [now] * len(messages) if new.created_at is None else new.created_at
    if len(times) != len(messages):
        raise invalid("created_at must have one number for each message.", "created_at")
    leading = takewhile(lambda message: message.role in SYSTEM_ROLES, messages)
    others = [
        (message, time)
        for message, time in zip(messages, times, strict=True)
        if message.role not in SYSTEM_ROLES
    ]
    return Import(
        system=tuple(message.record for message in leading),
        messages=tuple(message for message, _ in others),
        times=tuple(time for _, time in others),
        user=new.user,
    )


def _messages(raw: bytes, max_inline_media_bytes: int) -> list[ChatMessage]:
    try:
        pieces = items(raw)
    except UNREADABLE:
        pieces = []
    if not pieces:
        raise invalid("messages must be a list of one or more messages.", "messages")
    if len(pieces) > MAX_MESSAGES:
        raise invalid(f"messages may be at most {MAX_MESSAGES} at once.", "messages")
    return [
        _message(piece, max_inline_media_bytes, f"messages[{n}]") for n, piece in enumerate(pieces)
    ]


def _message(raw: bytes, max_inline_media_bytes: int, name: str) -> ChatMessage:
    message = read_message(raw, max_inline_media_bytes)
    if message is None:
        raise invalid(f"{name} must be an object.", name)
    if message.role not in ROLES:
        raise invalid(f"{name}.role must be one of: {', '.join(ROLES)}.", f"{name}.role")
    check_message(raw, name)
    return message


def commit_of(
    imported: Import,
    snapshot: Snapshot,
    exchange: str,
    now: float,
    count: Count,
    ttl: int,
    due: tuple[WorkRequest, ...],
) -> Commit:
    """The commit of an import into the session of ``snapshot``, whose newest turn must be in it.

    ``ttl`` is for a session that begins with it, ``due`` the work that it asks for.
    """
    drafts = _drafts(imported, snapshot, exchange, count)
    system = join_items(imported.system) if imported.system else None
    if system == snapshot.system:
        system = None
    return Commit(
        exchange=Exchange(
            id=exchange,
            profile="",
            started_at=now,
            created_at=now,
            memory=Injection(status="off", reason="import"),
            size=len(drafts),
            follows=snapshot.log[-1].card.id if snapshot.log else "",
        ),
        user=imported.user,
        drafts=drafts,
        system=system,
        system_tokens=sum(map(count, imported.system)) if system else 0,
        ttl=ttl,
        work_requests=due,
    )


def _drafts(imported: Import, snapshot: Snapshot, exchange: str, count: Count) -> tuple[Draft, ...]:
    """A user message opens a turn; all else joins the turn before it, the session's last one."""
    turn = _newest_turn(snapshot)
    drafts: list[Draft] = []
    for index, (message, time) in enumerate(zip(imported.messages, imported.times, strict=True)):
        id = message_id(exchange, index)
        if message.role == "user" or turn is None:
            turn = id
        body = message.record
        drafts.append(Draft(card=card_of(message, body, id, time, count), turn=turn, body=body))
    return tuple(drafts)


def _newest_turn(snapshot: Snapshot) -> str | None:
    newest = snapshot.end.turn
    return next((e.card.id for e in snapshot.log if e.position.turn == newest), None)
