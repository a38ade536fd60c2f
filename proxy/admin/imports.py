"""Messages from elsewhere on their way into history.  Pure, and slow for many: run it on a thread.

An import is one exchange: all of it or nothing.  Its leading system messages become the session's;
later ones are not recorded.  Its answers count as answers of an upstream, so that a client which
resends them can edit and regenerate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import msgspec

from proxy.admin import asking
from proxy.admin.asking import invalid
from proxy.admin.message_check import check_message
from proxy.admin.parts import AdminParts
from proxy.chat.extent import MAX_MESSAGES
from proxy.memory.model import Commit, Draft, Exchange, Injection, Snapshot, message_id
from proxy.memory.transcript import Count, Said
from proxy.memory.work import Due
from proxy.portable.conversing import card_of

SYSTEM_ROLES = ("system", "developer")
ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool", "function")

NO_TIME = 1e11
"""Seconds; a number from here on, thousands of years ahead, is milliseconds by mistake."""

UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Import:
    """What is imported.  ``times`` are when the messages ``said`` were made, Unix seconds."""

    system: tuple[bytes, ...]
    said: tuple[Said, ...]
    times: tuple[float, ...]
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the body of an import; ``limit`` bounds inline media, in bytes."""

    parts: AdminParts
    limit: int

    def read(self, body: bytes, now: float) -> Import:
        """Raises ProxyError 400, with ``param`` naming the item that is wrong."""
        fields = fields_of(self.parts.fields, body)
        messages = self._messages(fields)
        times = _times(fields, len(messages), now)
        leading = list(takewhile(lambda pair: pair[1].role in SYSTEM_ROLES, messages))
        kept = [
            (message, time)
            for (_, message), time in zip(messages, times, strict=True)
            if message.role not in SYSTEM_ROLES
        ]
        return Import(
            system=tuple(message.record for _, message in leading),
            said=tuple(message for message, _ in kept),
            times=tuple(time for _, time in kept),
            user=asking.user_id(asking.text_field(fields, "user"), "user"),
        )

    def _messages(self, fields: dict[str, bytes]) -> list[tuple[bytes, Said]]:
        try:
            pieces = self.parts.items(fields.get("messages", b"null"))
        except UNREADABLE:
            pieces = []
        if not pieces:
            raise invalid("messages must be a list of one or more messages.", "messages")
        if len(pieces) > MAX_MESSAGES:
            raise invalid(f"messages may be at most {MAX_MESSAGES} at once.", "messages")
        return [(raw, self._message(raw, f"messages[{i}]")) for i, raw in enumerate(pieces)]

    def _message(self, raw: bytes, name: str) -> Said:
        message = self.parts.read_message(raw, self.limit)
        if message is None:
            raise invalid(f"{name} must be an object.", name)
        if message.role not in ROLES:
            raise invalid(f"{name}.role must be one of: {', '.join(ROLES)}.", f"{name}.role")
        check_message(raw, name)
        return message


def fields_of(split: Callable[[bytes], dict[str, bytes]], body: bytes) -> dict[str, bytes]:
    """The fields of a body.  Raises ProxyError 400 unless it is a JSON object."""
    try:
        return split(body)
    except UNREADABLE:
        raise invalid("The body must be a JSON object.") from None


def _times(fields: dict[str, bytes], count: int, now: float) -> list[float]:
    raw = fields.get("created_at", b"null")
    if raw.strip() == b"null":
        return [now] * count
    try:
        times = msgspec.json.decode(raw, type=list[object])
    except UNREADABLE:
        raise invalid("created_at must be a list of numbers.", "created_at") from None
    if len(times) != count:
        raise invalid("created_at must have one number for each message.", "created_at")
    return [_time(value, f"created_at[{i}]") for i, value in enumerate(times)]


def _time(value: object, name: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < NO_TIME:
        return float(value)
    raise invalid(f"{name} must be a time in Unix seconds.", name)


def commit_of(
    imported: Import,
    snapshot: Snapshot,
    exchange: str,
    now: float,
    count: Count,
    ttl: int,
    due: tuple[Due, ...],
) -> Commit:
    """The commit of an import into the session of ``snapshot``, whose newest turn must be in it.

    ``ttl`` is for a session that begins with it, ``due`` the work that it asks for.
    """
    drafts = _drafts(imported, snapshot, exchange, count)
    system = system_of(imported.system) if imported.system else None
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
        due=due,
    )


def system_of(messages: Sequence[bytes]) -> bytes:
    """System messages as a session remembers them: a JSON list."""
    return b"[" + b",".join(messages) + b"]"


def _drafts(imported: Import, snapshot: Snapshot, exchange: str, count: Count) -> tuple[Draft, ...]:
    """A user message opens a turn; all else joins the turn before it, the session's last one."""
    turn = _newest_turn(snapshot)
    drafts: list[Draft] = []
    for index, (message, time) in enumerate(zip(imported.said, imported.times, strict=True)):
        id = message_id(exchange, index)
        if message.role == "user" or turn is None:
            turn = id
        body = message.record
        drafts.append(Draft(card=card_of(message, body, id, time, count), turn=turn, body=body))
    return tuple(drafts)


def _newest_turn(snapshot: Snapshot) -> str | None:
    newest = snapshot.end.turn
    return next((e.card.id for e in snapshot.log if e.position.turn == newest), None)
