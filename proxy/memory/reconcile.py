"""Deciding which messages of a request are new.  Pure: a snapshot and a request in, a plan out.

Clients send only what is new, or everything, or a window, or a preamble; all must end with each
message stored once and sent once.  H is the active log, M the request's messages without its
leading system ones.  What the client sent is never removed or reordered; only what the snapshot
showed can be superseded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from proxy.memory.align import Kind, Match, Side, align, of_a_call, runs
from proxy.memory.model import Card, Entry, Exchange, Snapshot

History = Literal["auto", "full", "delta"]

MAX_WANTED = 500
"""How many stored answers are fetched to be compared with re-rendered ones."""

RETRY_SECONDS = 120
"""How long after its commit an SDK's automatic retry still means the same exchange."""


class Incoming(Side, Protocol):
    """A message of the request."""

    @property
    def text(self) -> str: ...
    @property
    def blank(self) -> bool: ...


Rerendered = Callable[[Incoming, Card], bool]
"""Is an assistant message of the request the stored answer, re-rendered?  Equal calls are given."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What the client said about its request, beside the messages."""

    history: History = "auto"
    rewind: int = 0
    retry: bool = False
    """The client's SDK calls it an automatic retry (``X-Stainless-Retry-Count`` above 0)."""
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Fresh:
    """Message ``i`` of the request is new.

    It ``opens`` a turn, or is in the turn of the stored message ``joins``, or else in the turn of
    the new message before it.  ``replaces`` is the stored answer whose place it takes.
    """

    i: int
    opens: bool = False
    joins: str | None = None
    replaces: Card | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What follows from a request.

    ``order`` is everything in the order of sending: entries of the log, and indexes into M.
    ``log`` is the active log when the plan has been carried out, without what is new.  ``running``
    is the turn that the request goes on with, None where it begins one.  ``reply_joins`` is a
    stored message in whose turn the reply is, None: the turn of the newest new message.
    """

    order: tuple[Entry | int, ...]
    log: tuple[Entry, ...]
    fresh: tuple[Fresh, ...] = ()
    superseded: frozenset[str] = frozenset()
    activated: tuple[str, ...] = ()
    running: int | None = None
    reply_joins: str | None = None


@dataclass(frozen=True, slots=True)
class _Alignment:
    """Matches in terms of M and the log; ``evidence``: their last run holds a real answer."""

    matches: tuple[Match, ...] = ()
    evidence: bool = False


def reconcile(
    snapshot: Snapshot, m: Sequence[Incoming], intent: Intent, rerendered: Rerendered
) -> Plan:
    """The plan for a request with the messages ``m``; needs a whole snapshot if M has answers."""
    retried = retried_exchange(snapshot, m, intent)
    if retried is not None:
        gone = [e for e in snapshot.log if e.card.exchange == retried]
    else:
        gone = _last_turns(snapshot.log, intent.rewind)
    dropped = {entry.card.id for entry in gone}
    log = [entry for entry in snapshot.log if entry.card.id not in dropped]
    found = _Alignment()
    if intent.history != "delta":
        found = _align(log, snapshot, m, rerendered)
    layout = _Layout(log, m, found, full=intent.history == "full", retry=retried is not None)
    return layout.plan(dropped, snapshot)


def retried_exchange(snapshot: Snapshot, m: Sequence[Incoming], intent: Intent) -> str | None:
    """The exchange that this request is another attempt of."""
    if snapshot.attempt is not None:
        return snapshot.attempt.id
    last = snapshot.last
    again = last is not None and (last.incomplete or _recent_retry(last, intent))
    if last is not None and again and _ends_with(snapshot, m, last.id):
        return last.id
    return _answered_again(snapshot, m)


def _recent_retry(last: Exchange, intent: Intent) -> bool:
    return intent.retry and intent.now - last.created_at < RETRY_SECONDS


def _ends_with(snapshot: Snapshot, m: Sequence[Incoming], exchange: str) -> bool:
    """Does M end with exactly the messages (at least one) that the exchange recorded of its own?"""
    asked = [
        e.card.digest
        for e in snapshot.log
        if e.card.exchange == exchange and e.card.origin == "request"
    ]
    said = [x.digest for x in m if _visible(x)]
    return bool(asked) and said[-len(asked) :] == asked


def _answered_again(snapshot: Snapshot, m: Sequence[Incoming]) -> str | None:
    """Tool results that are recorded already, sent again on their own."""
    if not m or m[-1].answers is None or any(x.answers is None for x in m):
        return None
    if any(x.answers in open_calls(snapshot.log) for x in m):
        return None
    for entry in reversed(snapshot.log):
        if entry.card.answers == m[-1].answers:
            return entry.card.exchange if _same_calls(snapshot, m, entry.card.exchange) else None
    return None


def _same_calls(snapshot: Snapshot, m: Sequence[Incoming], exchange: str) -> bool:
    answered = {e.card.answers for e in snapshot.log if e.card.exchange == exchange}
    return {x.answers for x in m} <= answered


def open_calls(log: Sequence[Entry]) -> dict[str, Entry]:
    """The unanswered calls by id; of calls with the same id the latest."""
    waiting: dict[str, Entry] = {}
    for entry in log:
        for call in entry.card.calls:
            waiting[call] = entry
        if entry.card.answers is not None:
            waiting.pop(entry.card.answers, None)
    return waiting


def _last_turns(log: Sequence[Entry], n: int) -> list[Entry]:
    if not n:
        return []
    dropped = set(sorted({entry.position.turn for entry in log})[-n:])
    return [entry for entry in log if entry.position.turn in dropped]


def _align(
    log: Sequence[Entry], snapshot: Snapshot, m: Sequence[Incoming], rerendered: Rerendered
) -> _Alignment:
    """Align what is visible: neither blank messages nor later system ones part neighbours."""
    mine = [i for i, x in enumerate(m) if _visible(x)]
    theirs = [j for j, e in enumerate(log) if not e.card.blank]
    cards = [log[j].card for j in theirs]

    def similar(i: int, j: int) -> bool:
        message, card = m[mine[i]], cards[j]
        return alternate(snapshot, card, message.digest) is not None or rerendered(message, card)

    seen = [m[i] for i in mine]
    found = _with_edited_answers(align(seen, cards, similar), seen, cards)
    if not found:
        return _Alignment()
    evidence = any(cards[x.j].evidence for x in runs(found, cards)[-1])
    return _Alignment(tuple(Match(mine[x.i], theirs[x.j], x.kind) for x in found), evidence)


def wanted_bodies(snapshot: Snapshot, m: Sequence[Incoming]) -> list[str]:
    """Ids of stored answers that may be re-rendered in M and whose text the snapshot lacks."""
    cards = [entry.card for entry in snapshot.log]
    digests = {card.digest for card in cards}
    pairs = zip(m, m[1:], strict=False)
    asked = {a.digest for a, b in pairs if b.role == "assistant" and b.digest not in digests}
    wanted: list[str] = []
    for j, card in enumerate(cards):
        k = _next_assistant(cards, j) if card.digest in asked else None
        if k is not None and cards[k].id not in snapshot.bodies:
            wanted.append(cards[k].id)
    return wanted[-MAX_WANTED:]


def _next_assistant(cards: Sequence[Card], j: int) -> int | None:
    for k in range(j + 1, len(cards)):
        if not of_a_call(cards[k]):
            return k if cards[k].role == "assistant" else None
    return None


def _visible(message: Incoming) -> bool:
    return message.role not in ("system", "developer") and not message.blank


def alternate(snapshot: Snapshot, card: Card, digest: str) -> Card | None:
    """The inactive choice of the same reply that has this digest."""
    for entry in snapshot.alternates.get(card.exchange, ()):
        if entry.card.digest == digest:
            return entry.card
    return None


def _with_edited_answers(
    matches: Sequence[Match], m: Sequence[Side], h: Sequence[Side]
) -> tuple[Match, ...]:
    """Add the edited answers that stand directly behind a run (inside runs they are found)."""
    taken = {x.i for x in matches}
    ends = [*(x.j for x in matches[1:]), len(h)]
    added: list[Match] = []
    for match, end in zip(matches, ends, strict=False):
        i, j = match.i + 1, _next_answer(h, match.j)
        if match.kind is Kind.REPLACED or i in taken or i >= len(m) or not _answer(m[i]):
            continue
        if j is not None and j < end:
            added.append(Match(i, j, Kind.REPLACED))
    return tuple(sorted((*matches, *added)))


def _answer(message: Side) -> bool:
    return message.role == "assistant" and not message.calls


def _next_answer(h: Sequence[Side], j: int) -> int | None:
    for k in range(j + 1, len(h)):
        if not of_a_call(h[k]):
            return k if _answer(h[k]) else None
    return None


class _Layout:
    """Rules 2 to 7, once the alignment is known."""

    def __init__(
        self,
        log: Sequence[Entry],
        m: Sequence[Incoming],
        found: _Alignment,
        *,
        full: bool,
        retry: bool,
    ) -> None:
        self.log, self.m, self.matches, self.full = log, m, found.matches, full
        self.evidence, self.replaced = found.evidence, retry
        self.waiting = open_calls(log)
        behind = self.matches[-1].j + 1 if self.matches else (0 if full else len(log))
        self.rest, self.new = list(log[behind:]), self._behind_last_match()
        self.superseded: set[str] = set()

    def plan(self, dropped: set[str], snapshot: Snapshot) -> Plan:
        if self._supersedes_rest():
            self._drop_rest()
        activated = self._exchange_answers(snapshot)
        self._bring_something()
        gone = frozenset(dropped | self.superseded)
        running = self._running()
        return Plan(
            order=self._order(running),
            log=tuple(e for e in self.log if e.card.id not in gone),
            fresh=(*self._edited(), *self._fresh(running)),
            superseded=gone,
            activated=activated,
            running=running.position.turn if running else None,
            reply_joins=running.card.id if running and not self._recorded() else None,
        )

    def _behind_last_match(self) -> list[int]:
        return list(range(self.matches[-1].i + 1 if self.matches else 0, len(self.m)))

    def _supersedes_rest(self) -> bool:
        """Rules 3, 4 and 7: an edit or a regenerate."""
        if self.full or (self.matches and self.matches[-1].kind is Kind.REPLACED):
            return True
        waiting = open_calls(self.rest)
        if any(self.m[i].answers in waiting for i in self.new if self.m[i].answers is not None):
            return False
        return self.evidence

    def _drop_rest(self) -> None:
        self.superseded.update(entry.card.id for entry in self.rest)
        self.replaced |= any(entry.card.role == "assistant" for entry in self.rest)
        self.rest = []

    def _exchange_answers(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Answers that the client edited, or chose among several, replace the stored ones."""
        activated: list[str] = []
        for match in self.matches:
            card = self.log[match.j].card
            chosen = alternate(snapshot, card, self.m[match.i].digest)
            if match.kind is Kind.SIMILAR and chosen is not None:
                activated.append(chosen.id)
            elif match.kind is not Kind.REPLACED:
                continue
            self.superseded.add(card.id)
        return tuple(activated)

    def _bring_something(self) -> None:
        """Rule 6: a request always brings something."""
        unmatched = any(self.m[i].role not in ("system", "developer") for i in self.new)
        if unmatched or self.replaced or not self.matches:
            return
        last = self.matches[-1]
        if self.m[last.i].role == "assistant":
            return
        self.matches = self.matches[:-1]
        self.rest = [self.log[last.j], *self.rest]
        self.new = [last.i, *self.new]

    def _recorded(self) -> list[int]:
        """The new messages that go into history: no later system messages, nothing blank."""
        return [i for i in self.new if _visible(self.m[i])]

    def _running(self) -> Entry | None:
        """A stored message of the turn that the request goes on with."""
        recorded = self._recorded()
        first = self.m[recorded[0]] if recorded else None
        if first is not None and first.role == "user":
            return None
        if first is not None and first.answers in self.waiting:
            return self.waiting[first.answers]
        if self.rest and recorded:
            return self.rest[-1]
        if self.matches:
            return self.log[self.matches[-1].j]
        return self.log[-1] if self.log and not self.full else None

    def _order(self, running: Entry | None) -> tuple[Entry | int, ...]:
        if self.full:
            return tuple(range(len(self.m)))
        order: list[Entry | int] = []
        i = j = 0
        for match in self.matches:
            order += self._kept(self.log[j : match.j])
            order += range(i, match.i + 1)
            i, j = match.i + 1, match.j + 1
        turn = running.position.turn if running else None
        behind = self._kept(self.log[j:])
        order += [e for e in behind if e.position.turn != turn]
        order += [e for e in behind if e.position.turn == turn]
        return (*order, *range(i, len(self.m)))

    def _kept(self, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if entry.card.id not in self.superseded]

    def _edited(self) -> list[Fresh]:
        edited = [x for x in self.matches if x.kind is Kind.REPLACED]
        cards = [(x.i, self.log[x.j].card) for x in edited]
        return [Fresh(i, joins=card.id, replaces=card) for i, card in cards]

    def _fresh(self, running: Entry | None) -> list[Fresh]:
        fresh: list[Fresh] = []
        for i in self._recorded():
            if self.m[i].role == "user" or (not fresh and running is None):
                fresh.append(Fresh(i, opens=True))
            elif not fresh and running is not None:
                fresh.append(Fresh(i, joins=running.card.id))
            else:
                fresh.append(Fresh(i))
        return fresh
