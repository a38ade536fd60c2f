"""One session in memory: what the contract means, in the plainest words.

The oracle that every other back end is compared with, so it prefers the obvious to the fast.  Knows
nothing of tenants, time or expiry.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from msgspec.structs import replace

from proxy.memory.archive import Details, Message, StoredMessage
from proxy.memory.model import (
    IDEMPOTENCY_SECONDS,
    MAX_VERSIONS,
    Amendment,
    Commit,
    Draft,
    Entry,
    Exchange,
    LoadOptions,
    MessageEdit,
    Outcome,
    Position,
    Snapshot,
    State,
    Summary,
    WindowMove,
)
from proxy.stores.common.history import (
    FIRST_SEQ,
    SeqSpan,
    first_turn,
    is_choice,
    parse_message_id,
    with_size,
)
from proxy.stores.common.rules import NO_MARK, is_refused


@dataclass(slots=True)
class Record:
    """An exchange in history; ``usage`` is what an amendment added."""

    exchange: Exchange
    span: SeqSpan
    usage: bytes | None = None

    @property
    def value(self) -> Exchange:
        if self.usage is None:
            return self.exchange
        return replace(self.exchange, usage=self.usage)


@dataclass(slots=True)
class SessionState:
    """The history of one session, and what memory keeps of it."""

    created_at: float
    last_active_at: float
    owner: str | None = None
    details: Details = Details()
    next: int = FIRST_SEQ
    last: str | None = None
    lines: dict[int, StoredMessage] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)
    windows: dict[str, Position] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    versions: list[Summary] = field(default_factory=list)
    """Of the summary, the newest first."""
    changes: int = 0
    stalled: bool = False

    # Reading

    @property
    def log(self) -> list[StoredMessage]:
        return sorted(line for line in self.lines.values() if line.state == "active")

    @property
    def tokens(self) -> int:
        return sum(line.card.tokens for line in self.log)

    @property
    def window_start(self) -> int:
        """Where the window of the newest exchange's profile starts, 0 if nowhere."""
        if self.last is None:
            return 0
        start = self.windows.get(self.records[self.last].exchange.profile)
        return start.seq if start else 0

    def find(self, message: str) -> StoredMessage | None:
        place = parse_message_id(message)
        record = self.records.get(place.exchange) if place else None
        if place is None or record is None:
            return None
        return self.lines.get(record.span.seq(place.number) or 0)

    def lines_of(self, exchange: str) -> list[StoredMessage]:
        """The messages of an exchange, by index; reserved places may be empty."""
        first, size = self.records[exchange].span
        return [self.lines[seq] for seq in range(first, first + size) if seq in self.lines]

    def attempt(self, key: str | None, now: float) -> Record | None:
        record = self.records.get(self.keys.get(key, "")) if key else None
        if record is None or now - record.exchange.created_at >= IDEMPOTENCY_SECONDS:
            return None
        return record

    def look(self, options: LoadOptions, now: float) -> Snapshot:
        log = self.log
        start = self.windows.get(options.profile)
        window = self._window(log, start, options)
        attempt = self.attempt(options.idempotency_key, now)
        return Snapshot(
            exists=True,
            owner=self.owner,
            system=self.details.system,
            system_tokens=self.details.system_tokens,
            start=start,
            log=tuple(_entry(line) for line in (log if options.whole else window)),
            whole=options.whole,
            bodies={line.card.id: line.body for line in window},
            alternates=self._alternates() if options.whole else {},
            last=self.records[self.last].value if self.last else None,
            attempt=attempt.value if attempt else None,
            messages=len(log),
            tokens=self.tokens,
            summary=self.summary,
            changes=self.changes,
            stalled=self.stalled,
            created_at=self.created_at,
        )

    def _window(
        self, log: list[StoredMessage], start: Position | None, options: LoadOptions
    ) -> list[StoredMessage]:
        if not log:
            return []
        backwards = [(x.position.turn, x.card.tokens) for x in reversed(log)]
        first = first_turn(lambda: backwards, start, backwards[0][0], options, self.summary)
        last = self.lines_of(self.last) if self.last else []
        others = {line.position.turn for line in last if line.state == "active"}
        turns = ((line, line.position.turn) for line in log)
        return [line for line, turn in turns if turn >= first or turn in others]

    def _alternates(self) -> dict[str, tuple[Entry, ...]]:
        found: dict[str, tuple[Entry, ...]] = {}
        for exchange in self.records:
            lines = self.lines_of(exchange)
            replies = [line for line in lines if line.card.origin == "response"]
            idle = tuple(_entry(line) for line in replies if line.state != "active")
            if idle and any(is_choice(line.card) for line in replies):
                found[exchange] = idle
        return found

    def passages(self, seqs: Collection[int]) -> list[Message]:
        """The active ones among these messages, as a later request carries them."""
        lines = [(seq, self.lines[seq]) for seq in seqs if seq in self.lines]
        return [Message(seq, x.card, x.state, x.body) for seq, x in lines if x.state == "active"]

    # Writing

    def commit(self, commit: Commit, mark: float = NO_MARK) -> Outcome:
        """``mark`` is the latest of those that count for it."""
        exchange = with_size(commit)
        attempt = self.attempt(commit.idempotency_key, exchange.created_at)
        refused = self._refusal(commit, attempt)
        if refused:
            return refused
        if is_refused(mark, exchange.started_at):
            return "erased"
        self.owner = self.owner or commit.user or None
        self._detail(commit)
        if attempt:
            self.switch(self.ids(attempt.exchange.id), "superseded")
        self.switch(commit.superseded, "superseded")
        self.switch(commit.activated, "active")
        self._append(exchange, commit.drafts)
        if commit.window:
            self._move(commit.window)
        if commit.idempotency_key:
            self.keys[commit.idempotency_key] = exchange.id
        self.last_active_at = max(self.last_active_at, exchange.created_at)
        return "recorded"

    def _refusal(self, commit: Commit, attempt: Record | None) -> Outcome | None:
        if commit.exchange.id in self.records:
            return "duplicate"
        if commit.user and self.owner and commit.user != self.owner:
            return "foreign"
        if attempt is not None and attempt.exchange.id != self.last:
            return "stale"
        if attempt is not None and attempt.exchange.started_at > commit.exchange.started_at:
            return "outrun"
        return "outdated" if self._is_outdated(commit) else None

    def _is_outdated(self, commit: Commit) -> bool:
        seen = commit.planned_for
        if seen is None or self.last is None:
            return False
        broken_off = commit.exchange.incomplete or self.records[self.last].exchange.incomplete
        unseen = seen.last_exchange != self.last
        return seen.changes != self.changes or (unseen and (commit.branches_off or broken_off))

    def _detail(self, commit: Commit) -> None:
        if commit.system:
            self.details = replace(
                self.details, system=commit.system, system_tokens=commit.system_tokens
            )

    def switch(self, messages: Collection[str], state: State) -> bool:
        """Whether a message has come or gone."""
        changes = self.changes
        for message in messages:
            line = self.find(message)
            if line and line.state != state:
                self.lines[line.position.seq] = line._replace(state=state)
                self.changed(line.position)
        return self.changes > changes

    def changed(self, position: Position) -> None:
        """The message at this place is not what it was any more."""
        self.changes += 1
        self.versions = [x for x in self.versions if not x.covers(position)]

    def _append(self, exchange: Exchange, drafts: tuple[Draft, ...]) -> None:
        self.records[exchange.id] = Record(exchange, SeqSpan(self.next, exchange.size))
        self.last = exchange.id
        for seq, draft in enumerate(drafts, self.next):
            self._put(seq, draft)
        self.next += exchange.size

    def _put(self, seq: int, draft: Draft) -> None:
        began = self.find(draft.turn)
        turn = began.position.turn if began else seq
        self.lines[seq] = StoredMessage(
            Position(turn, seq), draft.card, draft.state, draft.body, draft.wire
        )

    def _move(self, move: WindowMove) -> None:
        line = self.find(move.start)
        if line is None:
            return
        old = self.windows.get(move.profile)
        new = line.position
        self.windows[move.profile] = new if move.may_move_back or old is None else max(old, new)

    def amend(self, amendment: Amendment) -> int | None:
        record = self.records.get(amendment.exchange)
        if record is None:
            return None
        if record.usage is None:
            record.usage = amendment.usage
        for draft in amendment.drafts:
            place = parse_message_id(draft.card.id)
            seq = record.span.seq(place.number) if place else None
            if place and seq and place.exchange == amendment.exchange and seq not in self.lines:
                self._put(seq, draft)
        edited = amendment.edited
        line = self.find(edited.card.id) if edited else None
        if edited is None or line is None or line.card.exchange != amendment.exchange:
            return None
        return self.edit(line, edited) if wire_of(line) == edited.replaced_wire else None

    def edit(self, line: StoredMessage, edited: MessageEdit) -> int:
        seq = line.position.seq
        self.lines[seq] = line._replace(card=edited.card, body=edited.body, wire=edited.wire)
        self.changed(line.position)
        return seq

    def ids(self, exchange: str) -> tuple[str, ...]:
        return tuple(line.card.id for line in self.lines_of(exchange))

    # Summaries

    @property
    def summary(self) -> Summary | None:
        return self.versions[0] if self.versions else None

    def put_summary(self, summary: Summary, after: int, changes: int | None) -> bool:
        in_force = self.summary.version if self.summary else 0
        if in_force != after or changes not in (None, self.changes):
            return False
        put = replace(summary, version=after + 1)
        self.versions = [put, *self.versions][:MAX_VERSIONS]
        self.stalled = False
        return True

    def drop_summaries(self) -> bool:
        there = bool(self.versions)
        self.versions, self.stalled = [], False
        self.changes += there
        return there


def wire_of(line: StoredMessage) -> bytes:
    return line.body if line.wire is None else line.wire


def _entry(line: StoredMessage) -> Entry:
    return Entry(line.position, line.card)
