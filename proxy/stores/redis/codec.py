"""Formats of history in Redis: stored values, arguments of scripts, and their replies.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from struct import pack
from typing import Any, get_args

import msgspec

from proxy.memory.archive import (
    Details,
    Message,
    PlacedExchange,
    Revision,
    Session,
    SessionArchive,
    StoredMessage,
)
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    MAX_VERSIONS,
    Amendment,
    Commit,
    Draft,
    Exchange,
    LoadOptions,
    MessageEdit,
    Outcome,
    Position,
    SessionKey,
    State,
    Summary,
    message_id,
)
from proxy.stores.common import codec
from proxy.stores.common.history import (
    SeqSpan,
    counts_of,
    is_choice,
    parse_message_id,
    parse_message_ids,
    with_size,
)
from proxy.stores.common.log_cache import CachedLog, Newest
from proxy.stores.common.passage_cache import NO_PASSAGES, CachedPassages
from proxy.stores.common.steps import CommitStep
from proxy.stores.redis.base import PARTS, field_of, format_time
from proxy.stores.redis.work import due_arguments

# Stored values

WINDOW = b"window:"
"""Prefix of the fields of a session's meta that hold windows; the profile follows."""


class StoredExchange(msgspec.Struct, frozen=True):
    """An exchange as it is stored; ``record`` is its JSON."""

    span: SeqSpan
    record: bytes


def read_stored(value: bytes) -> StoredExchange:
    first, size, _, record = value.split(b" ", 3)
    return StoredExchange(SeqSpan(int(first), int(size)), record)


def read_span(value: bytes) -> SeqSpan:
    first, size = value.split()
    return SeqSpan(int(first), int(size))


def read_exchange(value: bytes, usage: bytes | None) -> Exchange:
    return codec.decode_exchange(read_stored(value).record, usage)


def pack_exchange(first: int, exchange: Exchange) -> bytes:
    started = repr(exchange.started_at).encode()
    return b"%d %d %b %b" % (first, exchange.size, started, codec.encode(exchange))


def pack_version(summary: Summary) -> bytes:
    """A version of a summary, after the numbers that scripts read."""
    facts = (summary.version, summary.until.turn, summary.until.seq, summary.seen)
    return b"%d %d %d %d %b" % (*facts, codec.encode(summary))


def read_version(packed: bytes) -> Summary:
    return codec.decode_summary(packed.split(b" ", 4)[4])


def read_position(value: bytes) -> Position:
    turn, seq = value.split()
    return Position(int(turn), int(seq))


def read_session(name: str, fields: Sequence[bytes]) -> Session | None:
    """A session from the reply to HGETALL; None if there is none."""
    meta: Mapping[bytes, bytes] = dict(zip(fields[::2], fields[1::2], strict=True))
    if b"next" not in meta:
        return None
    windows = {
        field.removeprefix(WINDOW).decode(): read_position(value)
        for field, value in meta.items()
        if field.startswith(WINDOW)
    }
    last = _text(meta.get(b"last"))
    start = windows.get(meta[b"profile"].decode()) if last else None
    return Session(
        id=name,
        user=_text(meta.get(b"owner")),
        messages=int(meta[b"messages"]),
        tokens=int(meta[b"tokens"]),
        window_start=start.seq if start else 0,
        created_at=float(meta[b"created"]),
        last_active_at=float(meta[b"active_at"]),
        details=_read_details(meta),
        summary=read_version(meta[b"summary"]) if b"summary" in meta else None,
        end=int(meta[b"next"]) - 1,
        last=last,
        windows=windows,
    )


def _read_details(meta: Mapping[bytes, bytes]) -> Details:
    return Details(
        title=_text(meta.get(b"title")),
        metadata=meta.get(b"metadata", b"{}"),
        ttl=int(meta[b"ttl"]),
        system=meta.get(b"system"),
        system_tokens=int(meta.get(b"system_tokens", 0)),
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def read_messages(joined: bytes, flags: bytes, wires: Sequence[bytes]) -> list[Message]:
    """A page from the reply to messages.lua."""
    return [
        Message(entry.position.seq, entry.card, _state(flag), wire)
        for entry, flag, wire in zip(codec.decode_log(joined), flags, wires, strict=True)
    ]


def read_lines(joined: bytes, flags: bytes, texts: Sequence[bytes]) -> list[StoredMessage]:
    """The same with both texts of each message: body, and as it came."""
    rows = zip(codec.decode_log(joined), flags, texts[::2], texts[1::2], strict=True)
    return [
        StoredMessage(entry.position, entry.card, _state(flag), body, wire)
        for entry, flag, body, wire in rows
    ]


def _state(flag: int) -> State:
    return "active" if flag == ord("1") else "superseded"


def read_placed_exchanges(flat: Sequence[Any]) -> list[PlacedExchange]:
    """Exchanges from the reply to exchanges.lua: first seq, record, usage and indexes of each."""
    found = []
    for first, record, usage, indexes in zip(*(flat[n::4] for n in range(4)), strict=True):
        exchange = codec.decode_exchange(record, usage)
        ids = tuple(message_id(exchange.id, int(n)) for n in indexes.split(b","))
        found.append(PlacedExchange(first, exchange, ids))
    return found


# Arguments and replies of a request's reads and writes

OUTCOMES: Mapping[bytes, Outcome] = {each.encode(): each for each in get_args(Outcome)}

Argument = bytes | str | int | float


def load_arguments(
    options: LoadOptions,
    now: float,
    session: str,
    known: CachedLog | None,
    cached_passages: CachedPassages,
) -> list[Argument]:
    """All but the last: whether the window may be long."""
    return [
        options.profile,
        int(options.whole),
        "" if options.max_messages is None else options.max_messages,
        "" if options.max_tokens is None else options.max_tokens,
        options.idempotency_key or "",
        repr(now - IDEMPOTENCY_SECONDS),
        "" if options.max_uncovered_tokens is None else options.max_uncovered_tokens,
        known.stamp if known else "",
        known.begin if known else 0,
        known.end if known else 0,
        session,
        *(known.newest if known else Newest()),
        *cached_passages.newest,
    ]


def read_texts(seqs: bytes, bodies: Sequence[object]) -> dict[int, bytes | None]:
    """The bodies of messages by seq; ``seqs`` are joined by commas."""
    numbers = [int(number) for number in seqs.split(b",")] if seqs else []
    return dict(zip(numbers, codec.texts(bodies), strict=True))


def passage_arguments(
    user: str | None, seqs: Collection[int], known: CachedPassages
) -> list[Argument]:
    cached = known.messages
    parts = (known.missing(seqs), [seq for seq in seqs if seq in cached] if cached else ())
    packed = [pack(f"<{len(part)}I", *part) for part in parts]
    return [int(user is not None), user or "", known.stamp, *packed, *known.newest]


def read_passages(known: CachedPassages, reply: Sequence[Any]) -> CachedPassages:
    """The cached passages after a reply to passages.lua; none if there is no such session."""
    if not reply:
        return NO_PASSAGES
    stamp, same, *flat = reply
    entries = codec.decode_entries(flat[::2])
    read = {
        entry.position.seq: Message(entry.position.seq, entry.card, "active", body or b"")
        for entry, body in zip(entries, codec.texts(flat[1::2]), strict=True)
    }
    return (known if same else CachedPassages(stamp)).merged_with(read)


class CommitContext(msgspec.Struct, frozen=True):
    """The erasure marks for which a commit is refused.

    The script gets ``marks`` keys of marks, one of them that of ``person`` ("": no user); ``mark``
    is the time of the latest mark that was read before, None if there was none.
    """

    marks: int
    mark: float | None = None
    person: str = ""


def commit_arguments(key: SessionKey, commit: Commit, known: CommitContext) -> list[Argument]:
    exchange = with_size(commit)
    superseded, activated = _places(commit.superseded), _places(commit.activated)
    arguments: list[Argument] = [
        exchange.id,
        commit.user or "",
        commit.idempotency_key or "",
        repr(exchange.started_at),
        repr(exchange.created_at),
        codec.encode(exchange),
        commit.reserved,
        commit.system or b"",
        commit.system_tokens,
        exchange.profile,
        *_window_arguments(commit),
        commit.ttl,
        repr(exchange.created_at - IDEMPOTENCY_SECONDS),
        key.session,
        len(commit.drafts),
        len(superseded) // 2,
        len(activated) // 2,
        len(commit.work_requests),
        known.marks,
        format_time(known.mark),
        known.person,
        int(isinstance(commit, CommitStep)),
        *(
            ("", "")
            if commit.planned_for is None
            else (commit.planned_for.changes, commit.planned_for.last_exchange)
        ),
        int(commit.branches_off),
        codec.BROKEN_OFF,
    ]
    for draft in commit.drafts:
        arguments += _draft_arguments(draft)
    return arguments + superseded + activated + due_arguments(key, commit.work_requests)


def amend_arguments(amendment: Amendment) -> list[Argument]:
    edited = amendment.edited
    if edited is not None and edited.card.exchange != amendment.exchange:
        edited = None
    arguments: list[Argument] = [amendment.exchange, bytes(amendment.usage or b"")]
    arguments += [0] if edited is None else [1, *_edited_arguments(edited)]
    for draft in amendment.drafts:
        place = parse_message_id(draft.card.id)
        if place and place.exchange == amendment.exchange:
            arguments += [place.number, *_draft_arguments(draft)]
    return arguments


def _window_arguments(commit: Commit) -> tuple[Argument, ...]:
    start = parse_message_id(commit.window.start) if commit.window else None
    if commit.window is None or start is None:
        return ("", "", "", "")
    return (start.exchange, start.number, commit.window.profile, int(commit.window.may_move_back))


def _draft_arguments(draft: Draft) -> tuple[Argument, ...]:
    """The arguments of ``put`` in prelude.lua."""
    card = draft.card
    flags = (draft.state == "active") + 2 * is_choice(card) + 4 * (draft.wire is not None)
    place = b"" if draft.turn == card.id else _place(draft)
    return (codec.encode(card), card.tokens, flags, place, draft.body, draft.wire or b"")


def _place(draft: Draft) -> Argument:
    """Where a draft's turn begins: an index in its own exchange, or exchange and index."""
    turn, own = parse_message_id(draft.turn), parse_message_id(draft.card.id)
    if turn is None:
        return b""
    near = own is not None and own.exchange == turn.exchange
    return turn.number if near else f"{turn.exchange} {turn.number}"


def _places(messages: Iterable[str]) -> list[Argument]:
    """Exchange and index of each message, flattened."""
    return [part for place in parse_message_ids(messages) for part in place]


# Revisions and restored sessions

META, CARDS, LOG, ACTIVE, EXCHANGES, _, CHOICES, SUMMARIES = range(1, len(PARTS) + 1)
"""The keys of a session, by their numbers in Lua."""

MAX_BATCH_VALUES = 1000
MAX_BATCH_BYTES = 500_000
"""Limits on the values of one script, so that it never blocks the server for long."""

Value = tuple[int, bytes, bytes]
"""The number of a key, a field or member in it, and its value: a text, or a score."""


def revise_arguments(revision: Revision, name: str) -> list[Argument]:
    changed = (revision.removed, revision.superseded, revision.activated)
    places = [_places(ids) for ids in changed]
    details = [revision.expected_details, revision.details]
    arguments: list[Argument] = [name, len(revision.edited)]
    arguments += [len(some) // 2 for some in places]
    arguments += [int(each is not None) for each in (*details, revision.log_size)]
    for each in details:
        arguments += _detail_arguments(each) if each is not None else ()
    arguments += revision.log_size or ()
    for edited in revision.edited:
        arguments += _edited_arguments(edited)
    return arguments + [part for some in places for part in some]


def _detail_arguments(details: Details) -> tuple[Argument, ...]:
    return (
        "" if details.title is None else f"={details.title}",
        details.metadata,
        details.ttl,
        b"" if details.system is None else b"=" + details.system,
        details.system_tokens,
    )


def _edited_arguments(edited: MessageEdit) -> tuple[Argument, ...]:
    """The arguments of edit_prelude.lua."""
    place = parse_message_id(edited.card.id)
    return (
        place.exchange if place else "",
        place.number if place else 0,
        codec.encode(edited.card),
        edited.card.tokens,
        edited.body,
        int(edited.wire is not None),
        edited.wire or b"",
        edited.replaced_wire,
    )


def restored_values(archived: SessionArchive, name: str) -> Iterator[Value]:
    """All values of a session; ``name`` is the id of the restore."""
    known = counts_of(archived)
    yield from _meta_values(archived.session)
    yield META, b"revised", name.encode()
    yield META, b"next", b"%d" % known.next
    yield META, b"messages", b"%d" % known.messages
    yield META, b"tokens", b"%d" % known.tokens
    for line in archived.lines:
        yield from _message_values(line)
    for first, exchange, _ in archived.exchanges:
        yield EXCHANGES, b"x" + exchange.id.encode(), pack_exchange(first, exchange)
        if exchange.id == known.last:
            yield META, b"last", exchange.id.encode()
            yield META, b"profile", exchange.profile.encode()
    for id in known.choices:
        yield CHOICES, id.encode(), b""
    versions = [(b"%d" % summary.version, pack_version(summary)) for summary in archived.summaries]
    for number, version in versions[:MAX_VERSIONS]:
        yield SUMMARIES, number, version
    for _, in_force in versions[:1]:
        yield META, b"summary", in_force


def _meta_values(session: Session) -> Iterator[Value]:
    """The values that do not depend on the session's messages."""
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
    for profile, start in session.windows.items():
        yield META, WINDOW + profile.encode(), b"%d %d" % (start.turn, start.seq)


def _message_values(line: StoredMessage) -> Iterator[Value]:
    turn, card = line.position.turn, line.card
    place = field_of(line.position.seq)
    entry = codec.encode_entry(turn, line.position.seq, card)
    yield CARDS, place, b"%d %b" % (card.tokens, entry)
    yield LOG, place, line.body
    if line.wire is not None:
        yield LOG, b"w" + place, line.wire
    if line.state == "active":
        yield ACTIVE, b"%b %d" % (place, card.tokens), b"%d" % turn


def batches(values: Iterable[Value]) -> Iterator[list[Argument]]:
    """The values, flattened, in batches for one script each."""
    batch: list[Argument] = []
    size = 0
    for value in values:
        batch += value
        size += len(value[2])
        if size >= MAX_BATCH_BYTES or len(batch) >= 3 * MAX_BATCH_VALUES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
