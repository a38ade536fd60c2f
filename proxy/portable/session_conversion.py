"""Converts a conversation of another program to a session.  Pure, and slow for many messages.

An exchange is a user message with what follows it on its branch, as if it had been recorded here,
so that branches can be made active again.  Ids are hashes of the content, so that importing the
same conversation again gives the same session.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from proxy.chat.cachemarks import without_marks
from proxy.chat.jsontext import join_items
from proxy.chat.message import ChatMessage, read_message
from proxy.chat.tools.calltext import tokens_without_calls
from proxy.memory.archive import (
    MAX_TITLE,
    Details,
    PlacedExchange,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.ids import is_id
from proxy.memory.model import Card, Exchange, Injection, Position, State, message_id
from proxy.memory.recording.commit import Count
from proxy.portable.check import check_count
from proxy.portable.source import Conversation, ImportedMessage, ImportedSession

ID_CHARACTERS = 22

CLOCK_SKEW = 86_400.0
"""Seconds by which times in a file may be in the future."""


class ImportOptions(msgspec.Struct, frozen=True):
    """The properties of an imported session that are not in the file: its user and ttl (seconds).

    ``session`` is its id, None for that of the file.  ``now`` (Unix seconds) replaces missing times
    and those in the future.  ``media``: limit of inline media in bytes.  ``count`` returns a
    message's tokens.
    """

    count: Count
    now: float
    media: int
    ttl: int = 0
    user: str | None = None
    session: str | None = None


def to_session(conversation: Conversation, options: ImportOptions) -> ImportedSession:
    check_count(len(conversation.messages))
    id_in_file = conversation.id if conversation.id and is_id(conversation.id) else None
    id = options.session or id_in_file or _derive_id(conversation, options.user)
    latest = options.now + CLOCK_SKEW
    began = _not_future(conversation.created_at, latest)
    times = _times(conversation.messages, options.now if began is None else began, latest)
    lines, exchanges = _lines_and_exchanges(id, conversation.messages, times, options)
    active = [line.card.tokens for line in lines if line.state == "active"]
    system_messages = [without_marks(message) for message in conversation.system]
    system = join_items(system_messages) if system_messages else None
    head = Session(
        id=id,
        user=options.user,
        messages=len(active),
        tokens=sum(active),
        window_start=0,
        created_at=began if began is not None else min(times, default=options.now),
        last_active_at=max(times, default=options.now),
        details=Details(
            title=(conversation.title or "").strip()[:MAX_TITLE] or None,
            ttl=options.ttl,
            system=system,
            system_tokens=sum(map(options.count, system_messages)),
        ),
        end=len(lines),
        last=exchanges[-1].exchange.id if exchanges else None,
    )
    return ImportedSession(SessionArchive(head, tuple(lines), tuple(exchanges)))


def card_of(message: ChatMessage, body: bytes, id: str, at: float, count: Count) -> Card:
    """The card of a message that is imported; ``body`` is what is recorded of it.

    An answer counts as an upstream's.
    """
    answer = message.role == "assistant"
    blank = answer and message.blank
    return Card(
        id=id,
        role=message.role,
        tokens=0 if blank else count(body),
        digest=message.digest,
        calls=message.calls,
        answers=message.answers,
        origin="import",
        evidence=answer,
        blank=blank,
        created_at=at,
        shape=message.shape,
        side_text_tokens=tokens_without_calls(message.text, message.calls, count),
    )


def _derive_id(conversation: Conversation, user: str | None) -> str:
    texts = (each.message for each in conversation.messages)
    return f"import-{_digest(user or '', *(text.decode() for text in texts))}"


def _digest(*texts: str) -> str:
    hashed = sha256("\0".join(texts).encode("utf-8", "replace")).digest()
    return urlsafe_b64encode(hashed).decode("ascii")[:ID_CHARACTERS]


def _not_future(time: float | None, latest: float) -> float | None:
    """The time; None if it is in the future."""
    return None if time is None or time > latest else time


def _times(messages: Sequence[ImportedMessage], began: float, latest: float) -> list[float]:
    """The time of each message; that of its parent if it has none."""
    times: list[float] = []
    for message in messages:
        parent_time = times[message.parent] if message.parent >= 0 else began
        at = _not_future(message.at, latest)
        times.append(parent_time if at is None else at)
    return times


def _lines_and_exchanges(
    session: str,
    messages: Sequence[ImportedMessage],
    times: Sequence[float],
    options: ImportOptions,
) -> tuple[list[StoredMessage], list[PlacedExchange]]:
    read = [_message(each.message, options.media) for each in messages]
    lines: list[StoredMessage] = []
    exchanges: list[PlacedExchange] = []
    for first, end in _exchange_ranges(messages, read):
        parent = messages[first].parent
        exchange = _exchange(session, messages[first], first, end - first, times[first])
        ids = tuple(message_id(exchange.id, index) for index in range(end - first))
        for at, id in enumerate(ids, first):
            body = read[at].record
            card = card_of(read[at], body, id, times[at], options.count)
            turn = (
                at + 1
                if _begins_turn(at, messages, read)
                else lines[messages[at].parent].position.turn
            )
            state: State = "active" if messages[at].active else "superseded"
            lines.append(StoredMessage(Position(turn, at + 1), card, state, body))
        follows = lines[parent].card.id if parent >= 0 else ""
        exchanges.append(PlacedExchange(first + 1, replace(exchange, follows=follows), ids))
    return lines, exchanges


def _message(raw: bytes, media: int) -> ChatMessage:
    message = read_message(raw, media)
    assert message is not None  # all formats give objects
    return message


def _begins_turn(at: int, messages: Sequence[ImportedMessage], read: Sequence[ChatMessage]) -> bool:
    return read[at].role == "user" or messages[at].parent < 0


def _exchange_ranges(
    messages: Sequence[ImportedMessage], read: Sequence[ChatMessage]
) -> Iterator[tuple[int, int]]:
    """The ranges of exchanges, which begin with each turn and each switch to another branch."""
    first = 0
    for at in range(1, len(messages) + 1):
        if at == len(messages) or _begins_turn(at, messages, read) or messages[at].parent != at - 1:
            yield first, at
            first = at


def _exchange(session: str, begin: ImportedMessage, first: int, size: int, at: float) -> Exchange:
    return Exchange(
        id=f"im_{_digest(session, str(first), begin.message.decode())}",
        profile="",
        started_at=at,
        created_at=at,
        memory=Injection(status="off", reason="import"),
        size=size,
    )
