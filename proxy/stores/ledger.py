"""One session in memory: what the contract means, in the plainest words.

The oracle that every other back end is compared with, so it prefers the obvious to the fast.  Knows
nothing of tenants, time or expiry.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec

from proxy.memory.archive import Message
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    Amendment,
    Ask,
    Commit,
    Draft,
    Entry,
    Exchange,
    Outcome,
    Position,
    Snapshot,
    State,
    WindowMove,
)
from proxy.memory.summary import MOST_VERSIONS, Summary
from proxy.stores.places import (
    FIRST_SEQ,
    Span,
    begins_at,
    is_choice,
    locate,
    shown,
    sized,
)


@dataclass(slots=True)
class Line:
    """A message in history."""

    entry: Entry
    body: bytes
    wire: bytes
    active: bool


@dataclass(slots=True)
class Record:
    """An exchange in history; ``usage`` is what an amendment added."""

    exchange: Exchange
    span: Span
    usage: bytes | None = None

    @property
    def value(self) -> Exchange:
        if self.usage is None:
            return self.exchange
        return msgspec.structs.replace(self.exchange, usage=self.usage)


@dataclass(slots=True)
class Ledger:
    """The history of one session, and what memory keeps of it."""

    created_at: float
    last_active_at: float
    ttl: int = 0
    owner: str | None = None
    system: bytes | None = None
    system_tokens: int = 0
    next: int = FIRST_SEQ
    last: str | None = None
    lines: dict[int, Line] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    windows: dict[str, Position] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    versions: list[Summary] = field(default_factory=list)
    """Of the summary, the newest first."""
    changes: int = 0
    stalled: bool = False

    # Reading

    @property
    def log(self) -> list[Line]:
        active = (line for line in self.lines.values() if line.active)
        return sorted(active, key=lambda line: line.entry.position)

    @property
    def tokens(self) -> int:
        return sum(line.entry.card.tokens for line in self.log)

    @property
    def window_start(self) -> int:
        """Where the window of the newest exchange's profile starts, 0 if nowhere."""
        if self.last is None:
            return 0
        start = self.windows.get(self.records[self.last].exchange.profile)
        return start.seq if start else 0

    def find(self, message: str) -> Line | None:
        place = locate(message)
        record = self.records.get(place.exchange) if place else None
        if place is None or record is None:
            return None
        return self.lines.get(record.span.seq(place.number) or 0)

    def lines_of(self, exchange: str) -> list[Line]:
        """The messages of an exchange, by index; reserved places may be empty."""
        first, size = self.records[exchange].span
        return [self.lines[seq] for seq in range(first, first + size) if seq in self.lines]

    def attempt(self, key: str | None, now: float) -> Record | None:
        record = self.records.get(self.keys.get(key, "")) if key else None
        if record is None or now - record.exchange.created_at >= IDEMPOTENCY_SECONDS:
            return None
        return record

    def look(self, ask: Ask, now: float) -> Snapshot:
        log = self.log
        start = self.windows.get(ask.profile)
        window = self._window(log, start, ask)
        attempt = self.attempt(ask.idempotency_key, now)
        return Snapshot(
            exists=True,
            owner=self.owner,
            system=self.system,
            system_tokens=self.system_tokens,
            start=start,
            log=tuple(line.entry for line in (log if ask.whole else window)),
            whole=ask.whole,
            bodies={line.entry.card.id: line.body for line in window},
            alternates=self._alternates() if ask.whole else {},
            last=self.records[self.last].value if self.last else None,
            attempt=attempt.value if attempt else None,
            messages=len(log),
            tokens=self.tokens,
            summary=self.summary,
            changes=self.changes,
            stalled=self.stalled,
        )

    def _window(self, log: list[Line], start: Position | None, ask: Ask) -> list[Line]:
        if not log:
            return []
        backwards = [(x.entry.position.turn, x.entry.card.tokens) for x in reversed(log)]
        first = begins_at(lambda: backwards, start, backwards[0][0], ask, self.summary)
        last = self.lines_of(self.last) if self.last else []
        others = {line.entry.position.turn for line in last if line.active}
        return [line for line in log if shown(line.entry.position.turn, first, others)]

    def _alternates(self) -> dict[str, tuple[Entry, ...]]:
        found: dict[str, tuple[Entry, ...]] = {}
        for exchange in self.records:
            lines = self.lines_of(exchange)
            replies = [line for line in lines if line.entry.card.origin == "response"]
            idle = tuple(line.entry for line in replies if not line.active)
            if idle and any(is_choice(line.entry.card) for line in replies):
                found[exchange] = idle
        return found

    def page(self, states: Collection[State], after: int, limit: int) -> list[Message]:
        rows = (
            Message(seq, line.entry.card, "active" if line.active else "superseded", line.wire)
            for seq, line in sorted(self.lines.items())
            if seq > after
        )
        return [row for row in rows if row.state in states][:limit]

    def passages(self, seqs: Collection[int]) -> list[Message]:
        """The active ones among these messages, as a later request carries them."""
        lines = [(seq, self.lines[seq]) for seq in seqs if seq in self.lines]
        return [Message(seq, x.entry.card, "active", x.body) for seq, x in lines if x.active]

    # Writing

    def commit(self, commit: Commit) -> Outcome:
        exchange = sized(commit)
        attempt = self.attempt(commit.idempotency_key, exchange.created_at)
        refused = self._refusal(commit, attempt)
        if refused:
            return refused
        self.owner = self.owner or commit.user or None
        if commit.system:
            self.system, self.system_tokens = commit.system, commit.system_tokens
        if attempt:
            self._set(tuple(x.entry.card.id for x in self.lines_of(attempt.exchange.id)), False)
        self._set(commit.superseded, False)
        self._set(commit.activated, True)
        self._append(exchange, commit.drafts)
        if commit.window:
            self._move(commit.window)
        if commit.idempotency_key:
            self.keys[commit.idempotency_key] = exchange.id
        self.ttl = self.ttl if commit.ttl is None else commit.ttl
        self.last_active_at = max(self.last_active_at, exchange.created_at)
        return "recorded"

    def _refusal(self, commit: Commit, attempt: Record | None) -> Outcome | None:
        if commit.exchange.id in self.records:
            return "duplicate"
        if commit.user and self.owner and commit.user != self.owner:
            return "foreign"
        if attempt is None:
            return None
        if attempt.exchange.id != self.last:
            return "stale"
        return "outrun" if attempt.exchange.started_at > commit.exchange.started_at else None

    def _set(self, messages: tuple[str, ...], active: bool) -> None:
        for message in messages:
            line = self.find(message)
            if line and line.active != active:
                line.active = active
                self.changes += 1
                position = line.entry.position
                self.versions = [x for x in self.versions if not x.covers(position)]

    def _append(self, exchange: Exchange, drafts: tuple[Draft, ...]) -> None:
        self.records[exchange.id] = Record(exchange, Span(self.next, exchange.size))
        self.last = exchange.id
        for seq, draft in enumerate(drafts, self.next):
            self._put(seq, draft)
        self.next += exchange.size

    def _put(self, seq: int, draft: Draft) -> None:
        began = self.find(draft.turn)
        turn = began.entry.position.turn if began else seq
        entry = Entry(Position(turn, seq), draft.card)
        wire = draft.body if draft.wire is None else draft.wire
        self.lines[seq] = Line(entry, draft.body, wire, draft.state == "active")

    def _move(self, move: WindowMove) -> None:
        line = self.find(move.start)
        if line is None:
            return
        old = self.windows.get(move.profile)
        new = line.entry.position
        self.windows[move.profile] = new if move.anew or old is None else max(old, new)

    def amend(self, amendment: Amendment) -> None:
        record = self.records.get(amendment.exchange)
        if record is None:
            return
        if record.usage is None:
            record.usage = amendment.usage
        for draft in amendment.drafts:
            place = locate(draft.card.id)
            seq = record.span.seq(place.number) if place else None
            if place and seq and place.exchange == amendment.exchange and seq not in self.lines:
                self._put(seq, draft)

    def ids(self, exchange: str) -> tuple[str, ...]:
        return tuple(line.entry.card.id for line in self.lines_of(exchange))

    # Summaries

    @property
    def summary(self) -> Summary | None:
        return self.versions[0] if self.versions else None

    def put_summary(self, summary: Summary, after: int, changes: int | None) -> bool:
        in_force = self.summary.version if self.summary else 0
        if in_force != after or changes not in (None, self.changes):
            return False
        put = msgspec.structs.replace(summary, version=after + 1)
        self.versions = [put, *self.versions][:MOST_VERSIONS]
        self.stalled = False
        return True

    def drop_summaries(self) -> bool:
        there = bool(self.versions)
        self.versions, self.stalled = [], False
        self.changes += there
        return there
