"""From memory to the lines of an export.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from proxy.memory.archive import Archived, Line, Placed, Session
from proxy.memory.items import Item
from proxy.portable import format
from proxy.portable.value import put


def encoded(line: format.Line) -> bytes:
    """A line with its end."""
    return msgspec.json.encode(line) + b"\n"


def header(scope: format.Scope, now: float) -> bytes:
    return encoded(
        format.Header(
            format=format.NAME,
            version=format.VERSION,
            minor=format.MINOR,
            scope=scope,
            exported_at=now,
        )
    )


def session_lines(archived: Archived, dismissed: tuple[str, ...] = ()) -> Iterator[bytes]:
    """All lines of one session; see ``SessionLine`` for ``dismissed``.

    What exchanges name beside ``lines`` came while they were read, and is left out.
    """
    yield encoded(_session(archived.session, dismissed))
    for line in archived.lines:
        yield encoded(_message(line))
    there = {line.card.id for line in archived.lines}
    named = [tuple(id for id in placed.messages if id in there) for placed in archived.exchanges]
    pairs = zip(archived.exchanges, named, strict=True)
    exchanges = [placed._replace(messages=ids) for placed, ids in pairs if ids]
    for placed in exchanges:
        yield encoded(_exchange(placed))
    for summary in archived.summaries:
        yield encoded(format.SummaryLine(summary=summary))
    yield encoded(
        format.SessionEnd(
            messages=len(archived.lines),
            exchanges=len(exchanges),
            summaries=len(archived.summaries),
        )
    )


def shelf(user: str, dismissed: tuple[str, ...]) -> bytes:
    """A shelf begins; "" is the tenant's own."""
    return encoded(format.ShelfLine(user=user or None, dismissed=dismissed))


def item_line(item: Item) -> bytes:
    value = put(bytes(item.value))
    return encoded(format.ItemLine(item=msgspec.structs.replace(item, value=value)))


def _session(session: Session, dismissed: tuple[str, ...]) -> format.SessionLine:
    details = session.details
    return format.SessionLine(
        id=session.id,
        user=session.user,
        title=details.title,
        metadata=put(details.metadata),
        ttl=details.ttl,
        system=put(details.system),
        system_tokens=details.system_tokens,
        created_at=session.created_at,
        last_active_at=session.last_active_at,
        end=session.end,
        last=session.last,
        windows={name: (at.turn, at.seq) for name, at in sorted(session.windows.items())},
        dismissed=dismissed,
    )


def _message(line: Line) -> format.MessageLine:
    card = line.card
    return format.MessageLine(
        seq=line.position.seq,
        turn=line.position.turn,
        state=line.state,
        id=card.id,
        role=card.role,
        tokens=card.tokens,
        digest=card.digest,
        calls=card.calls,
        answers=card.answers,
        origin=card.origin,
        evidence=card.evidence,
        incomplete=card.incomplete,
        blank=card.blank,
        choice=card.choice,
        created_at=card.created_at,
        shape=card.shape,
        told=card.told,
        body=put(line.body),
        wire=put(line.wire),
    )


def _exchange(placed: Placed) -> format.ExchangeLine:
    return format.ExchangeLine(
        first=placed.first,
        messages=placed.messages,
        exchange=msgspec.structs.replace(placed.exchange, usage=None),
        usage=put(placed.exchange.usage),
    )
