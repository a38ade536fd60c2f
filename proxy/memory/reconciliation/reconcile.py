"""Deciding which messages of a request are new.  Pure: a snapshot and a request in, a plan out.

Clients send only what is new, or everything, or a window, or a preamble; all must end with each
message stored once and sent once.  H is the active log, M the request's messages without its
leading system ones.  What the client sent is never removed or reordered; only what the snapshot
showed can be superseded.  The rules that are named by their numbers are in docs/reconciliation.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from proxy.chat.canonical import is_prefix, similar
from proxy.chat.message import SYSTEM_ROLES, ChatMessage, text_of
from proxy.memory.model import Card, Entry, Position, Snapshot
from proxy.memory.reconciliation.align import Match, MatchKind
from proxy.memory.reconciliation.match import (
    Alignment,
    Intent,
    Likeness,
    Rerendered,
    alternate,
    answered_from_before,
    last_turns,
    match_messages,
    open_calls,
    said_behind,
    told_without_answers,
    visible,
)
from proxy.memory.reconciliation.retry import attempted, retried_exchange


def rerender(bodies: Mapping[str, bytes]) -> Rerendered:
    """Is an answer of the request the stored one, re-rendered, or the whole of a broken one?"""

    def likeness(message: ChatMessage, card: Card) -> Likeness:
        body = bodies.get(card.id)
        if body is None:
            return ""
        mine, stored = message.text.strip(), text_of(body).strip()
        if not (card.incomplete and is_prefix(mine, stored)) and not similar(mine, stored):
            return ""
        return "continued" if mine != stored and mine.startswith(stored) else "same"

    return likeness


class Fresh(msgspec.Struct, frozen=True, gc=False):
    """Message ``i`` of the request is new.

    It ``opens`` a turn, or is in the turn of the stored message ``joins``, or else in the turn of
    the new message before it.  ``replaces`` is the stored answer whose place it takes.
    """

    i: int
    opens: bool = False
    joins: str | None = None
    replaces: Card | None = None


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What follows from a request.

    ``order`` is everything in the order of sending: entries of the log, and indexes into M.
    ``log`` is the active log when the plan has been carried out, without what is new.  ``running``
    is the turn that the request goes on with, None where it begins one.  ``reply_joins`` is a
    stored message in whose turn the reply is, None: the turn of the newest new message.
    ``follows`` is the last message of the log then, ``activated`` ones included, "" without any.
    ``resent`` are the stored messages that the request itself brings once more.
    """

    order: tuple[Entry | int, ...]
    log: tuple[Entry, ...]
    fresh: tuple[Fresh, ...] = ()
    superseded: frozenset[str] = frozenset()
    activated: tuple[str, ...] = ()
    running: int | None = None
    reply_joins: str | None = None
    follows: str = ""
    resent: tuple[Entry, ...] = ()


def reconcile(
    snapshot: Snapshot,
    m: Sequence[ChatMessage],
    intent: Intent,
    rerendered: Rerendered,
    returned: AbstractSet[str] = frozenset(),
) -> Plan:
    """The plan for a request with the messages ``m``; needs a whole snapshot if M has answers.

    ``returned``: digests of answers with which M goes back to another branch, see ``PassedOver``.
    """
    retried = retried_exchange(snapshot, m, intent)
    gone = _taken_back(snapshot.log, intent, retried)
    dropped = {entry.card.id for entry in gone}
    told = _told_by_client([e for e in gone if e.card.exchange == retried])
    log = _without(snapshot.log, dropped - told)
    found, again = Alignment(log), dict[int, Card]()
    if intent.history != "delta":
        found = match_messages(log, snapshot, m, rerendered, returned)
    if not found.matches and intent.history != "full" and any(x.answers for x in m):
        found = told_without_answers(log, m)
    onward = None if gone or found.matches else _onward(snapshot.log, m)
    if onward is not None and intent.history != "full":
        return onward
    if told:
        found, again = _said_again(found, told)
    layout = _Layout(m, found, again, full=intent.history == "full", retry=retried is not None)
    return layout.plan(dropped, snapshot)


def _onward(log: tuple[Entry, ...], m: Sequence[ChatMessage]) -> Plan | None:
    """What ``_Layout`` makes of a request that begins a turn and tells nothing again, as nearly all
    do, at a fraction of the cost: the log stays, and all that was said is new.  None for others."""
    said = [i for i, x in enumerate(m) if visible(x)]
    if not said or m[said[0]].role != "user":
        return None
    return Plan(
        order=(*log, *range(len(m))),
        log=log,
        fresh=tuple([Fresh(i, opens=m[i].role == "user") for i in said]),
        follows=log[-1].card.id if log else "",
    )


def _taken_back(log: Sequence[Entry], intent: Intent, retried: str | None) -> list[Entry]:
    """A retry does not rewind again; what it goes on from stays the same."""
    again = last_turns(log, intent.rewind) if retried is None else attempted(log, retried)
    return [*again, *(said_behind(log, intent.on) or ())]


def _told_by_client(gone: Sequence[Entry]) -> set[str]:
    """What an attempt recorded of its request, if it told answers in a form of its own.

    What these stood for is superseded, so that without them M would match nothing there.
    """
    asked = [entry.card for entry in gone if entry.card.origin == "request"]
    return {card.id for card in asked} if any(x.role == "assistant" for x in asked) else set()


def _said_again(found: Alignment, told: AbstractSet[str]) -> tuple[Alignment, dict[int, Card]]:
    """What an attempt recorded of its request is recorded anew by the next one.

    At M's end it is new; before that it takes the place of what was recorded.  Also, by its place
    in M, what was recorded of it before.
    """
    log = found.log
    again = {x.i: log[x.j].card for x in found.matches if log[x.j].card.id in told}
    matches = list(found.matches)
    while matches and matches[-1].i in again:
        matches.pop()
    inside = {log[x.j].card.id for x in matches if x.i in again}
    kept = [j for j, e in enumerate(log) if e.card.id not in told or e.card.id in inside]
    place = {j: n for n, j in enumerate(kept)}
    moved = [
        Match(x.i, place[x.j], MatchKind.REPLACED if x.i in again else x.kind) for x in matches
    ]
    return replace(found, log=[log[j] for j in kept], matches=tuple(moved)), again


def _place(entry: Entry) -> Position:
    return entry.position


def _without(entries: Sequence[Entry], gone: AbstractSet[str]) -> Sequence[Entry]:
    return [e for e in entries if e.card.id not in gone] if gone else entries


class _Layout:
    """Rules 2 to 9, once the alignment is known.

    ``matches`` are those that count, ``new`` is what M has behind the last of them, and ``rest``
    what the log has; ``replaced``: an answer is asked for anew.  These and ``superseded`` change
    from rule to rule, in the order of ``plan``.
    """

    def __init__(
        self,
        m: Sequence[ChatMessage],
        found: Alignment,
        again: Mapping[int, Card],
        *,
        full: bool,
        retry: bool,
    ) -> None:
        self.m, self.found, self.again, self.full, self.replaced = m, found, again, full, retry
        self.log, self.matches = found.log, found.matches
        last = self.matches[-1] if self.matches else None
        self.new = range(last.i + 1 if last else 0, len(m))
        behind = last.j + 1 if last else (0 if full else len(self.log))
        self.rest = self.log[behind:]
        self.superseded: set[str] = set()
        self.untold = self._untold()

    @cached_property
    def waiting(self) -> dict[str, Entry]:
        """The calls that nobody has answered; most requests have nothing that could."""
        return open_calls(self.log)

    def plan(self, dropped: set[str], snapshot: Snapshot) -> Plan:
        if self._supersedes_rest():
            self._drop_rest()
        chosen = self._exchange_answers(snapshot)
        self._bring_something()
        self.superseded.update(self._told_again())
        gone = frozenset(dropped | self.superseded)
        running = self._running()
        kept = _without(self.log, gone)
        log = tuple(kept if self.found.placed else sorted(kept, key=_place))
        return Plan(
            order=self._order(running),
            log=log,
            fresh=(*self._edited(), *self._fresh(running)),
            superseded=gone,
            activated=tuple(entry.card.id for entry in chosen),
            running=running.position.turn if running else None,
            reply_joins=running.card.id if running and not self._recorded() else None,
            follows=max((*log[-1:], *chosen), key=_place).card.id if log or chosen else "",
            resent=(*self._kept([self.log[match.j] for match in self.matches]), *chosen),
        )

    def _untold(self) -> dict[int, list[Entry]]:
        """For each answer told otherwise, but the last match, what was stored behind its other form
        and is not told: the rest of its turn up to the next match."""
        pairs = zip(self.matches, self.matches[1:], strict=False)
        return {
            a.i: [e for e in self.log[a.j + 1 : b.j] if e.position.turn == self._turn(a)]
            for a, b in pairs
            if a.kind in (MatchKind.REPLACED, MatchKind.RETOLD)
        }

    def _turn(self, match: Match) -> int:
        return self.log[match.j].position.turn

    def _supersedes_rest(self) -> bool:
        """Was what stands behind the last match edited away (rule 4)?  Always where M is the whole
        history, or that match an answer told otherwise (rule 5); never where M answers a call that
        waits there."""
        if self.full or (self.matches and self.matches[-1].kind is MatchKind.REPLACED):
            return True
        answers = answered_from_before([self.m[i] for i in self.new])
        return self.found.evidence and answers.isdisjoint(open_calls(self.rest))

    def _drop_rest(self) -> None:
        self.superseded.update(entry.card.id for entry in self.rest)
        self.replaced |= any(entry.card.role == "assistant" for entry in self.rest)
        self.rest = []

    def _exchange_answers(self, snapshot: Snapshot) -> list[Entry]:
        """Answers that the client edited, or chose among several, replace the stored ones."""
        activated: list[Entry] = []
        for match in self.matches:
            if match.kind not in (MatchKind.SIMILAR, MatchKind.REPLACED):
                continue
            card = self.log[match.j].card
            if match.kind is MatchKind.SIMILAR:
                chosen = alternate(snapshot, card, self.m[match.i].digest)
                if chosen is None:
                    continue
                activated.append(chosen)
            self.superseded.add(card.id)
            self.superseded.update(entry.card.id for entry in self.untold.get(match.i, ()))
        return activated

    def _bring_something(self) -> None:
        """Rule 6: a request always brings something; a prefill does if it is not the end of H."""
        unmatched = any(self.m[i].role not in SYSTEM_ROLES for i in self.new)
        if unmatched or self.replaced or not self.matches:
            return
        last = self.matches[-1]
        prefill = self.m[last.i].role == "assistant"
        if self._renamed(last) or (prefill and not self.rest):
            return
        at = self._last_asked() if prefill else len(self.matches) - 1
        first = self.matches[at]
        self.matches, self.rest = self.matches[:at], self.log[first.j :]
        self.new = range(first.i, len(self.m))

    def _told_again(self) -> Iterator[str]:
        """Ids of the stored results that M brings once more, together with one that is still
        missing: the new ones take their place (rule 8).  Where M has the calls too, rule 4 does
        it."""
        answers = {self.m[i].answers for i in self.new} - {None}
        if self.matches or not answers:
            return
        heads = {e.card.id: e for call, e in self.waiting.items() if call in answers}
        for head in heads.values():
            if again := answers.intersection(head.card.calls) - self.waiting.keys():
                yield from (e.card.id for e in self._behind(head) if e.card.answers in again)

    def _behind(self, head: Entry) -> Iterator[Entry]:
        """What stands behind a message in its turn."""
        at = head.position
        return (e for e in self.log if e.position.turn == at.turn and e.position > at)

    def _last_asked(self) -> int:
        """Which match is what a prefill begins the answer of; the prefill where nothing is."""
        asked = [n for n, match in enumerate(self.matches) if self.m[match.i].role == "user"]
        return asked[-1] if asked else len(self.matches) - 1

    def _renamed(self, match: Match) -> bool:
        """Is it a result under an id that only the client knows?"""
        return self.m[match.i].answers != self.log[match.j].card.answers

    def _recorded(self) -> list[int]:
        """The new messages that go into history: no later system messages, nothing blank."""
        return [i for i in self.new if visible(self.m[i])]

    def _running(self) -> Entry | None:
        """A stored message of the turn that the request goes on with."""
        recorded = self._recorded()
        first = self.m[recorded[0]] if recorded else None
        if first is not None and first.role == "user":
            return None
        last = self.matches[-1] if self.matches else None
        if first is not None and last is not None and first.answers in self.m[last.i].calls:
            return self.log[last.j]
        if (waiting := self._waited_for(recorded)) is not None:
            return waiting
        if self.rest and recorded:
            return self.rest[-1]
        if last is not None:
            return self.log[last.j]
        return self.log[-1] if self.log and not self.full else None

    def _waited_for(self, recorded: Sequence[int]) -> Entry | None:
        """The message whose call waits for one of the results that come first: beside it others may
        come again."""
        answers = takewhile(bool, (self.m[i].answers for i in recorded))
        return next((self.waiting[call] for call in answers if call in self.waiting), None)

    def _order(self, running: Entry | None) -> tuple[Entry | int, ...]:
        if self.full:
            return tuple(range(len(self.m)))
        order: list[Entry | int] = []
        hidden = {e.card.id for entries in self.untold.values() for e in entries}
        gaps, i = self._left_out(), 0
        turn = running.position.turn if running is not None else None
        told = any(self._turn(match) == turn for match in self.matches)
        last = [] if told else self._of_turn(gaps, turn)
        hidden.update(e.card.id for e in last)
        for n, match in enumerate(self.matches):
            if n in gaps:
                order += _without(self._kept(gaps[n]), hidden)
            order += range(i, match.i + 1)
            i = match.i + 1
        behind = self._kept(gaps.get(len(self.matches), ()))
        if running is None:
            return (*order, *behind, *range(i, len(self.m)))
        last = last or self._of_turn({0: behind}, turn)
        at = self._told_from(turn, order) if told and running in last else len(order)
        order[at:at] = [e for e in behind if e.position.turn != turn]
        return (*order, *last, *range(i, len(self.m)))

    def _told_from(self, turn: int | None, order: Sequence[Entry | int]) -> int:
        """Where the request begins to tell a turn."""
        first = next(match.i for match in self.matches if self._turn(match) == turn)
        return order.index(first)

    def _of_turn(self, gaps: Mapping[int, Sequence[Entry]], turn: int | None) -> list[Entry]:
        """What is left out of the turn that the request goes on with: it stands last."""
        own = [e for gap in gaps.values() for e in self._kept(gap) if e.position.turn == turn]
        return sorted(own, key=_place)

    def _left_out(self) -> dict[int, Sequence[Entry]]:
        """What the client does not tell, by the match before which it stands: the next one, or,
        in a log as it came, the next one of the same turn.  What stands behind all is the last."""
        gaps, begin = dict[int, Sequence[Entry]](), 0
        for n, end in enumerate((*(match.j for match in self.matches), len(self.log))):
            if end > begin:
                gaps[n] = self.log[begin:end]
            begin = end + 1
        return self._by_turn(gaps) if self.found.arrived else gaps

    def _by_turn(self, gaps: Mapping[int, Sequence[Entry]]) -> dict[int, Sequence[Entry]]:
        others, own = defaultdict[int, list[Entry]](list), defaultdict[int, list[Entry]](list)
        told_next: dict[int, int] = {}
        for n in range(len(self.matches), -1, -1):
            if n < len(self.matches):
                told_next[self._turn(self.matches[n])] = n
            for entry in gaps.get(n, ()):
                turn = entry.position.turn
                (own[told_next[turn]] if turn in told_next else others[n]).append(entry)
        return {
            n: [*sorted(others[n], key=_place), *sorted(own[n], key=_place)]
            for n in {*others, *own}
        }

    def _kept(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return _without(entries, self.superseded)

    def _edited(self) -> list[Fresh]:
        edited: list[Fresh] = []
        ends = [*(x.i for x in self.matches[1:]), 0]
        for match, end in zip(self.matches, ends, strict=False):
            if match.kind is not MatchKind.REPLACED:
                continue
            card = self.log[match.j].card
            edited.append(Fresh(match.i, joins=card.id, replaces=self._stands_for(match.j)))
            if self.m[match.i].calls or card.calls:
                edited += [Fresh(i, joins=card.id) for i in self._between(match.i, end)]
        return edited

    def _stands_for(self, j: int) -> Card:
        """The stored answer at j, or what was answered to it if it is a prefill."""
        answers = (entry.card for entry in self.log[j : j + 2])
        gone = (card for card in answers if card.evidence and card.id in self.superseded)
        return next(gone, self.log[j].card)

    def _between(self, i: int, end: int) -> list[int]:
        """What the client tells of a call behind it: results, and all that stands for them."""
        return [k for k in range(i + 1, end) if visible(self.m[k])]

    def _fresh(self, running: Entry | None) -> list[Fresh]:
        fresh: list[Fresh] = []
        for i in self._recorded():
            opens = self.m[i].role == "user" or not (fresh or running)
            joins = running.card.id if running and not (fresh or opens) else None
            fresh.append(Fresh(i, opens=opens, joins=joins, replaces=self.again.get(i)))
        return fresh
