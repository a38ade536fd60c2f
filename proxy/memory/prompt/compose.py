"""Composes the prompt: ``[system, summary] [window] [the client's messages]``.  Pure.

The client's messages keep their order and bytes.  Stored messages are put between them as planned,
if they are in the window and a strict upstream accepts them.  Messages that a summary covers are
left out; evicted messages stay until a summary covers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec.structs import replace

from proxy.chat.message import ChatMessage, Piece
from proxy.chat.tools.calltext import CallRendering, have_no_marks, render_stored
from proxy.memory.model import LOG_START, Card, Entry, Position, Snapshot, Summary
from proxy.memory.prompt.validity import valid_messages
from proxy.memory.prompt.window import (
    UNBOUNDED,
    Size,
    Window,
    advance_start,
    size_of,
    turn_start,
    visible_entries,
)
from proxy.memory.reconciliation.match import open_calls
from proxy.memory.reconciliation.plan import Plan

NO_SIZE = Size(0, 0)


class SummaryRules(msgspec.Struct, frozen=True, gc=False):
    """With summaries evicted turns stay until one covers them, within ``max_tokens`` injected
    tokens.

    ``frame_tokens`` are those of the block of memory without the summary's own text.
    """

    max_tokens: int
    frame_tokens: int = 0


CapSource = Literal["max_tokens_header", "context_length"]
Reason = Literal["window", "summary", CapSource]
"""What kept the newest of the evicted messages out of a prompt."""


class PromptRules(msgspec.Struct, frozen=True, gc=False):
    """How to compose the prompt of one request.

    ``inject_system``: inject the remembered system message, as the request has none.
    ``max_injected_tokens`` caps all injected tokens of this request, those of the system message
    only if ``caps_system``; ``capped_by`` says where the cap comes from.  ``inject = False``
    injects nothing at all.  ``summaries`` is None if the profile has none.
    """

    window: Window
    inject_system: bool = True
    max_injected_tokens: int | None = None
    caps_system: bool = False
    capped_by: CapSource = "max_tokens_header"
    inject: bool = True
    summaries: SummaryRules | None = None


class Prompt(msgspec.Struct, frozen=True, gc=False):
    """What is sent: ``pieces`` are stored entries and indexes into the request's messages;
    ``stored`` are the entries among them.

    ``start`` is where the profile's window starts from now on; it has moved (``start_moved``), or
    was computed anew (``start_recomputed``) because messages in it were superseded or earlier ones
    came back.  ``injected`` counts the stored messages, and the tokens of these, the summary and
    the remembered system message; ``system_tokens`` and ``summary_tokens`` are the latter two.
    ``evicted`` counts what is left out for the ``evicted_reason``.  ``remaining`` is the size that
    may be added before the next summary is due.  ``resent``: see Plan.
    """

    pieces: tuple[Entry | int, ...]
    stored: tuple[Entry, ...]
    system: bytes | None
    summary: Summary | None
    start: Position
    start_moved: bool
    start_recomputed: bool
    injected: Size
    evicted: Size
    evicted_reason: Reason | None
    system_tokens: int
    summary_tokens: int
    remaining: Size = UNBOUNDED
    resent: tuple[Entry, ...] = ()
    sent_as_text: frozenset[str] = frozenset()
    """Ids of the stored calls that are sent as the text that stands for them."""

    @property
    def cards(self) -> list[Card]:
        """The stored messages, with their tokens as they are sent."""
        return _cards_as_sent(self.stored, self.sent_as_text)

    @property
    def is_empty(self) -> bool:
        return self.system is None and self.summary is None and self.injected.messages == 0

    def missing_bodies(self, bodies: Mapping[str, bytes]) -> list[str]:
        """Ids of the stored messages whose JSON is still to be fetched."""
        return [entry.card.id for entry in self.stored if entry.card.id not in bodies]


class _Sent(msgspec.Struct, frozen=True, gc=False):
    piece: Entry | int
    role: str
    calls: tuple[str, ...]
    answers: str | None
    stored: bool
    words: bool = False
    """It is sent as text instead of tool calls."""

    @property
    def as_text(self) -> _Sent | None:
        if isinstance(self.piece, int) or not _text_tokens(self.piece.card):
            return None
        return replace(self, calls=(), words=True)


def _text_tokens(card: Card) -> int:
    """Tokens of the text that is sent instead of its tool calls; 0 if there is none."""
    return card.call_text_tokens or card.side_text_tokens


def _cards_as_sent(entries: Sequence[Entry], text_ids: AbstractSet[str]) -> list[Card]:
    """The cards with their tokens as sent: those whose ids are in ``text_ids`` are sent as text."""
    cards = [entry.card for entry in entries]
    if not text_ids:
        return cards
    return [
        replace(card, tokens=_text_tokens(card)) if card.id in text_ids else card for card in cards
    ]


class _View(msgspec.Struct, frozen=True, gc=False):
    """Which stored entries are shown: those from ``start`` on that ``summary`` does not cover, and
    all of the ``running_turn``.  ``hides_none``: that is all of them."""

    start: Position
    running_turn: int | None
    summary: Summary | None
    hides_none: bool

    def part_of(self, log: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The entries of a log that are shown."""
        if self.hides_none:
            return log
        entries = visible_entries(log, self.start, self.running_turn)
        return tuple([e for e in entries if self.shows(e)] if self.summary else entries)

    def sends(self, entry: Entry) -> bool:
        return not entry.card.blank and (self.hides_none or self.shows(entry))

    def shows(self, entry: Entry) -> bool:
        position = entry.position
        if position.turn == self.running_turn:
            return True
        return position >= self.start and not (self.summary and self.summary.covers(position))


def compose(snapshot: Snapshot, plan: Plan, m: Sequence[ChatMessage], rules: PromptRules) -> Prompt:
    """The prompt for a plan; an entry whose body the snapshot lacks may be in it."""
    system, system_tokens = _system(snapshot, rules)
    window = rules.window.reduced_by(system_tokens)
    plain = _size_if_plain(plan.log)
    counted = plan if plain is not None else _plan_as_counted(plan, m)
    start, anew = _start(snapshot, counted, window, plain)
    summary, summary_tokens = _summary(snapshot, plan, rules, system_tokens)
    other_tokens = system_tokens + summary_tokens
    visible, capped = _view_of(snapshot, counted, rules, start, other_tokens)
    shown = visible.part_of(plan.log)
    shown_size = plain if plain and shown is plan.log else _size_of_cards([e.card for e in shown])
    pieces, stored, text_ids = _pieces(
        plan, m, visible, shown, plain=plain is not None, inject=rules.inject
    )
    as_shown = stored is shown and not text_ids
    injected = shown_size if as_shown else _size_of_cards(_cards_as_sent(stored, text_ids))
    evicted = _evicted(snapshot, plan, visible, shown_size)
    return Prompt(
        pieces=pieces,
        stored=stored,
        system=system,
        summary=summary,
        start=start,
        start_moved=start != (snapshot.start or LOG_START),
        start_recomputed=anew,
        injected=Size(injected.messages, injected.tokens + other_tokens),
        evicted=evicted,
        evicted_reason=_reason(visible, rules, capped=capped) if evicted.messages else None,
        system_tokens=system_tokens,
        summary_tokens=summary_tokens,
        remaining=_remaining(counted, start, visible.summary, window)
        if rules.summaries
        else UNBOUNDED,
        resent=plan.resent,
        sent_as_text=text_ids,
    )


def _system(snapshot: Snapshot, rules: PromptRules) -> tuple[bytes | None, int]:
    """The remembered system message to be sent and its tokens."""
    system, tokens = snapshot.system, snapshot.system_tokens
    too_long = (
        rules.caps_system
        and rules.max_injected_tokens is not None
        and tokens > rules.max_injected_tokens
    )
    sent = system and rules.inject_system and rules.inject and not too_long
    return (system, tokens) if sent else (None, 0)


def _plan_as_counted(plan: Plan, m: Sequence[ChatMessage]) -> Plan:
    """The plan with the log as windows count it: unanswered tool calls count as the text that is
    sent instead of them."""
    waiting, answered = open_calls(plan.log), {x.answers for x in m}
    cut = {
        entry.card.id
        for entry in waiting.values()
        if answered.isdisjoint(entry.card.calls) and waiting.keys() >= {*entry.card.calls}
    }
    if not cut:
        return plan
    return replace(
        plan, log=tuple([_without_calls(e) if e.card.id in cut else e for e in plan.log])
    )


def _without_calls(entry: Entry) -> Entry:
    tokens = _text_tokens(entry.card)
    return replace(entry, card=replace(entry.card, tokens=tokens, blank=not tokens))


def _remaining(plan: Plan, start: Position, cover: Summary | None, window: Window) -> Size:
    """The room until the window overflows; none if evicted turns already wait for a summary."""
    if any(e.position < start and not (cover and cover.covers(e.position)) for e in plan.log):
        return NO_SIZE
    return window.remaining(size_of(visible_entries(plan.log, start)))


def _summary(
    snapshot: Snapshot, plan: Plan, rules: PromptRules, system_tokens: int
) -> tuple[Summary | None, int]:
    """The summary to be sent and its tokens; none if the client sends all that it covers, or it has
    no room."""
    summary = snapshot.summary
    if summary is None or not summary.text or rules.summaries is None or not rules.inject:
        return None, 0
    tokens, most = summary.tokens + rules.summaries.frame_tokens, rules.summaries.max_tokens
    if system_tokens + tokens > (
        most if rules.max_injected_tokens is None else min(most, rules.max_injected_tokens)
    ):
        return None, 0
    hidden = (e for e in plan.order if not isinstance(e, int) and summary.covers(e.position))
    if snapshot.whole and next(hidden, None) is None and summary.seen:
        return None, 0
    return summary, tokens


def _view_starts(
    snapshot: Snapshot, plan: Plan, rules: PromptRules, start: Position, other_tokens: int
) -> tuple[Position, Position]:
    """Where the view of this request starts without its own cap, and with it; ``other_tokens`` are
    those of everything else that is injected."""
    shown, log = start, plan.log
    if rules.summaries is not None:
        cover = snapshot.summary
        log = tuple(e for e in log if not (cover and cover.covers(e.position)))
        room = max(0, rules.summaries.max_tokens - other_tokens)
        if not snapshot.stalled or rules.window.shows_nothing:
            shown = min(
                start, advance_start(log, LOG_START, Window(max_tokens=room), plan.running_turn)
            )
        if rules.window.max_tokens is not None:  # a summary of people's own may be of any size
            all_left = Window(max_tokens=room, by_turn=rules.window.by_turn)
            shown = advance_start(log, shown, all_left, plan.running_turn)
    if rules.max_injected_tokens is None:
        return shown, shown
    bound = Window(
        max_tokens=max(0, rules.max_injected_tokens - other_tokens), by_turn=rules.window.by_turn
    )
    return shown, advance_start(log, shown, bound, plan.running_turn)


def _view_of(
    snapshot: Snapshot, plan: Plan, rules: PromptRules, start: Position, other_tokens: int
) -> tuple[_View, bool]:
    """The part of the log that this request sees, and whether its own cap makes it smaller."""
    cover = snapshot.summary if rules.summaries else None
    uncapped, shown = _view_starts(snapshot, plan, rules, start, other_tokens)
    if rules.window.by_turn:
        until = cover.until if cover else LOG_START
        uncapped, shown = (
            turn_start(plan.log, at, plan.running_turn, until) for at in (uncapped, shown)
        )
    everything = cover is None and (not plan.log or plan.log[0].position >= shown)
    return _View(shown, plan.running_turn, cover, everything), shown != uncapped


def _reason(visible: _View, rules: PromptRules, *, capped: bool) -> Reason:
    """Why the newest message that is not shown was left out."""
    if capped:
        return rules.capped_by
    covered = visible.summary is not None and visible.summary.until >= visible.start
    return "summary" if covered else "window"


def render(prompt: Prompt, m: Sequence[ChatMessage], bodies: Mapping[str, bytes]) -> list[Piece]:
    """The messages of a prompt, without system ones; a stored one that has no body is left out."""
    if (
        not prompt.sent_as_text
        and (behind := _trailing_request(prompt.pieces, prompt.stored)) is not None
    ):
        with suppress(KeyError):  # else all that is stored is here: nothing has to be left out
            stored = [bodies[entry.card.id] for entry in prompt.stored]
            if have_no_marks(stored):
                return [*stored, *[m[i] for i in behind]]
    pieces = [
        m[piece] if isinstance(piece, int) else bodies.get(piece.card.id) for piece in prompt.pieces
    ]
    stored = [piece for piece in pieces if isinstance(piece, bytes)]
    if prompt.sent_as_text or not have_no_marks(stored):
        pieces = [
            render_stored(piece, _call_form(entry, prompt)) if isinstance(piece, bytes) else piece
            for piece, entry in zip(pieces, prompt.pieces, strict=True)
        ]
    return [piece for piece in pieces if piece is not None]


def _call_form(piece: Entry | int, prompt: Prompt) -> CallRendering:
    if isinstance(piece, int) or piece.card.id not in prompt.sent_as_text:
        return "whole"
    return "arguments" if piece.card.call_text_tokens else "words"


def _start(
    snapshot: Snapshot, plan: Plan, window: Window, plain: Size | None
) -> tuple[Position, bool]:
    old = snapshot.start or LOG_START
    anew = False
    if snapshot.start is not None and (plan.superseded or plan.activated):
        switched = plan.superseded.union(plan.activated)
        entries = (*snapshot.log, *plan.log) if plan.activated else snapshot.log
        anew = any(e.position < old for e in entries if e.card.id in switched)
    start = LOG_START if anew else old
    shows_all = not plan.log or plan.log[0].position >= start
    if plain is not None and shows_all and window.fits(plain):
        return start, anew  # as ``advance_start`` would find, without another look at each of them
    return advance_start(plan.log, start, window, plan.running_turn), anew


def _pieces(
    plan: Plan,
    m: Sequence[ChatMessage],
    visible: _View,
    shown: tuple[Entry, ...],
    *,
    plain: bool,
    inject: bool,
) -> tuple[tuple[Entry | int, ...], tuple[Entry, ...], frozenset[str]]:
    """What is sent, in order; the stored entries among it; the ids of those sent as text.

    Nearly always that is what is ``shown`` of the log followed by the request, which is fast.
    ``plain``: see ``_size_if_plain``.
    """
    if plain and inject and (behind := _trailing_request(plan.order, plan.log)) is not None:
        return (*shown, *behind), shown, frozenset()
    pieces = [x for x in plan.order if isinstance(x, int) or (inject and visible.sends(x))]
    if plain and not any(said.calls for said in m):
        return tuple(pieces), _stored(pieces), frozenset()
    sent = valid_messages([_sent(piece, m) for piece in pieces])
    calls = (x.piece for x in sent if x.words)
    ids = frozenset(x.card.id for x in calls if not isinstance(x, int))
    pieces = [x.piece for x in sent]
    return tuple(pieces), _stored(pieces), ids


def _size_if_plain(log: Sequence[Entry]) -> Size | None:
    """The size of a log without blank messages, tool calls and results, None for any other.

    Any order of a plain log is valid that separates no call of the client's from its result.
    """
    tokens = [
        c.tokens for e in log if not ((c := e.card).blank or c.calls or c.answers is not None)
    ]
    return Size(len(tokens), sum(tokens)) if len(tokens) == len(log) else None


def _stored(pieces: Sequence[Entry | int]) -> tuple[Entry, ...]:
    return tuple([piece for piece in pieces if not isinstance(piece, int)])


def _trailing_request(pieces: Sequence[Entry | int], entries: Sequence[Entry]) -> list[int] | None:
    """The indexes of the request's messages if the pieces are exactly ``entries`` and then those;
    else None.

    Entries are compared by identity first, which is cheap.
    """
    n = len(entries)
    behind = [piece for piece in pieces[n:] if isinstance(piece, int)]
    return behind if pieces[:n] == entries and n + len(behind) == len(pieces) else None


def _sent(piece: Entry | int, m: Sequence[ChatMessage]) -> _Sent:
    if isinstance(piece, int):
        said = m[piece]
        return _Sent(piece, said.role, said.calls, said.answers, stored=False)
    card = piece.card
    return _Sent(piece, card.role, card.calls, card.answers, stored=True)


def _size_of_cards(cards: Sequence[Card]) -> Size:
    tokens = [card.tokens for card in cards]
    return Size(len(tokens), sum(tokens))


def _evicted(snapshot: Snapshot, plan: Plan, visible: _View, shown: Size) -> Size:
    """The size of what is neither ``shown`` nor sent by the client itself."""
    gone = back = NO_SIZE
    if plan.superseded:
        gone = _size_of_cards([e.card for e in snapshot.log if e.card.id in plan.superseded])
    if plan.activated:
        back = _size_of_cards([e.card for e in plan.log if e.card.id in plan.activated])
    hidden = [] if visible.hides_none else [e.card for e in plan.resent if not visible.shows(e)]
    resent = _size_of_cards(hidden)
    messages = snapshot.messages - gone.messages + back.messages
    tokens = snapshot.tokens - gone.tokens + back.tokens
    return Size(
        max(0, messages - shown.messages - resent.messages),
        max(0, tokens - shown.tokens - resent.tokens),
    )
