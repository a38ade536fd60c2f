"""What scripts are told that change sessions by hand, or put them back.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proxy.memory.archive import Archived, Details, Edited, Line, Revision, Session
from proxy.memory.summary import MOST_VERSIONS
from proxy.stores import codec
from proxy.stores.places import locate, locate_all
from proxy.stores.redis_codec import Argument, flat
from proxy.stores.redis_keys import PARTS, field_of
from proxy.stores.redis_values import WINDOW, pack_exchange, pack_version
from proxy.stores.restoring import restored

META, CARDS, LOG, ACTIVE, EXCHANGES, _, CHOICES, SUMMARIES = range(1, len(PARTS) + 1)
"""The keys of a session, by the numbers that Lua gives them."""

AT_ONCE = 1000
BYTES_AT_ONCE = 500_000
"""Values and bytes that one script brings, so that it never blocks the server for long."""

Value = tuple[int, bytes, bytes]
"""A key by its number, a field or member in it, and what stands there: text, or a score."""


def revise_arguments(revision: Revision, name: str) -> list[Argument]:
    places = [
        flat(locate_all(ids)) for ids in (revision.removed, revision.superseded, revision.activated)
    ]
    details = [revision.was, revision.details]
    arguments: list[Argument] = [name, len(revision.edited)]
    arguments += [len(some) // 2 for some in places]
    arguments += [int(each is not None) for each in details]
    for each in details:
        arguments += _details(each) if each is not None else ()
    for edited in revision.edited:
        arguments += _edited(edited)
    return arguments + [part for some in places for part in some]


def _details(details: Details) -> tuple[Argument, ...]:
    return (
        "" if details.title is None else f"={details.title}",
        details.metadata,
        details.ttl,
        b"" if details.system is None else b"=" + details.system,
        details.system_tokens,
    )


def _edited(edited: Edited) -> tuple[Argument, ...]:
    place = locate(edited.card.id)
    return (
        place.exchange if place else "",
        place.number if place else 0,
        codec.encode(edited.card),
        edited.card.tokens,
        edited.body,
        int(edited.wire is not None),
        edited.wire or b"",
        edited.was,
    )


def restored_values(archived: Archived, name: str) -> Iterator[Value]:
    """All that a session consists of; ``name`` is that of the change that puts it back."""
    known = restored(archived)
    yield from _meta(archived.session)
    yield META, b"revised", name.encode()
    yield META, b"next", b"%d" % known.next
    yield META, b"messages", b"%d" % known.messages
    yield META, b"tokens", b"%d" % known.tokens
    for line in archived.lines:
        yield from _line(line)
    for first, exchange, _ in archived.exchanges:
        yield EXCHANGES, b"x" + exchange.id.encode(), pack_exchange(first, exchange)
        if exchange.id == known.last:
            yield META, b"last", exchange.id.encode()
            yield META, b"profile", exchange.profile.encode()
    for id in known.choices:
        yield CHOICES, id.encode(), b""
    versions = [(b"%d" % kept.version, pack_version(kept)) for kept in archived.summaries]
    for number, version in versions[:MOST_VERSIONS]:
        yield SUMMARIES, number, version
    for _, in_force in versions[:1]:
        yield META, b"summary", in_force


def _meta(session: Session) -> Iterator[Value]:
    """What is known of the session without its messages."""
    details = session.details
    yield META, b"revision", b"1"
    yield META, b"profile", b""
    yield META, b"created", repr(session.created_at).encode()
    yield META, b"active_at", repr(session.last_active_at).encode()
    yield META, b"ttl", b"%d" % details.ttl
    if session.user:
        yield META, b"owner", session.user.encode()
    yield META, b"metadata", details.metadata
    if details.title is not None:
        yield META, b"title", details.title.encode()
    if details.system is not None:
        yield META, b"system", details.system
    yield META, b"system_tokens", b"%d" % details.system_tokens
    for profile, (turn, seq) in session.windows.items():
        yield META, WINDOW + profile.encode(), b"%d %d" % (turn, seq)


def _line(line: Line) -> Iterator[Value]:
    (turn, seq), card = line.position, line.card
    place = field_of(seq)
    yield CARDS, place, b"%d %b" % (card.tokens, codec.encode_entry(turn, seq, card))
    yield LOG, place, line.body
    if line.wire is not None:
        yield LOG, b"w" + place, line.wire
    if line.state == "active":
        yield ACTIVE, b"%b %d" % (place, card.tokens), b"%d" % turn


def batches(values: Iterable[Value]) -> Iterator[list[Argument]]:
    """The values one after another, in parts that a script may bring at once."""
    batch: list[Argument] = []
    size = 0
    for value in values:
        batch += value
        size += len(value[2])
        if size >= BYTES_AT_ONCE or len(batch) >= 3 * AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
