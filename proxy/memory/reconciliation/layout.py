"""The plan for a request whose alignment with the log is known: rules 2 to 9.  Pure.

Each rule is a function of what the rules before it have found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise, takewhile, zip_longest
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from proxy.chat.message import SYSTEM_ROLES, ChatMessage
from proxy.memory.model import Card, Entry, Snapshot
from proxy.memory.reconciliation.align import Match, MatchKind
from proxy.memory.reconciliation.match import (
    Alignment,
    answered_from_before,
    find_alternate,
    is_visible,
    open_calls,
)
from proxy.memory.reconciliation.plan import NewMessage, Plan

_place = attrgetter("position")

Gaps = Mapping[int, Sequence[Entry]]
"""Entries that M leaves out, by the index in M before which they are sent: 0, or after a match."""


class Cut(msgspec.Struct, frozen=True, gc=False):
    """How a request and the log relate, up to where they differ.

    ``matches`` are the valid ones, ``new`` is the range of M after the last of them, and ``rest``
    are the entries of the log after it.  ``full``: M is the whole history.
    """

    m: Sequence[ChatMessage]
    log: Sequence[Entry]
    full: bool
    matches: tuple[Match, ...]
    new: range
    rest: Sequence[Entry]

    @property
    def last(self) -> Match | None:
        return self.matches[-1] if self.matches else None

    @property
    def gap_places(self) -> Sequence[int]:
        """Indexes in M where it may leave out entries: at the start, and after each match."""
        return [0, *(match.i + 1 for match in self.matches)]

    def turn(self, match: Match) -> int:
        return self.log[match.j].position.turn


def build_plan(
    m: Sequence[ChatMessage],
    found: Alignment,
    snapshot: Snapshot,
    again: Mapping[int, Card],
    dropped: AbstractSet[str],
    *,
    full: bool,
    retry: bool,
) -> Plan:
    """The plan; ``dropped`` are ids of rewound messages, ``again`` those cards that M repeats, by
    index."""
    cut, edited_away = _cut_and_edited_away(m, found, full=full, retry=retry)
    chosen, after_altered = _chosen_alternates(m, found, snapshot), _dropped_after_altered(found)
    waiting = open_calls(cut.log) if any(m[i].answers for i in cut.new) else {}
    gone = [
        *edited_away,
        *_replaced_answers(found, chosen, after_altered),
        *_resent_results(cut, waiting),
    ]
    superseded = {entry.card.id for entry in gone}
    recorded = [i for i in cut.new if is_visible(m[i])]  # no later system messages, nothing blank
    running = _continued_entry(cut, recorded, waiting)
    log = without(found.log, superseded | dropped)
    log = tuple(log if found.keeps_order else sorted(log, key=_place))
    activated = list(chosen.values())
    gaps = {} if full else _gaps(cut, found, superseded)
    return Plan(
        order=tuple(_order(cut, running, gaps, after_altered)),
        log=log,
        new_messages=(
            *_altered_answers(cut, superseded),
            *_new_messages(m, recorded, running, again),
        ),
        superseded=frozenset(superseded | dropped),
        activated=tuple(entry.card.id for entry in activated),
        running_turn=running.position.turn if running else None,
        reply_joins=running.card.id if running and not recorded else None,
        follows=max((*log[-1:], *activated), key=_place).card.id if log or activated else "",
        resent=(*without([cut.log[x.j] for x in cut.matches], superseded), *activated),
    )


def without(entries: Sequence[Entry], gone: AbstractSet[str]) -> Sequence[Entry]:
    return [e for e in entries if e.card.id not in gone] if gone else entries


def _cut_and_edited_away(
    m: Sequence[ChatMessage], found: Alignment, *, full: bool, retry: bool
) -> tuple[Cut, Sequence[Entry]]:
    """The cut, and the entries after it that the client edited away."""
    cut = _cut(m, found, full=full)
    edited_away = cut.rest if _rest_is_edited_away(cut, evidence=found.evidence) else ()
    if edited_away:
        cut = replace(cut, rest=())
    anew = retry or any(entry.card.role == "assistant" for entry in edited_away)
    return cut if anew else _with_something_new(cut), edited_away


def _cut(m: Sequence[ChatMessage], found: Alignment, *, full: bool) -> Cut:
    last = found.matches[-1] if found.matches else None
    new = range(last.i + 1 if last else 0, len(m))
    after_last = last.j + 1 if last else (0 if full else len(found.log))
    return Cut(m, found.log, full, found.matches, new, found.log[after_last:])


def _rest_is_edited_away(cut: Cut, *, evidence: bool) -> bool:
    """Whether the client edited away what is after the last match (rule 4).  Always if M is the
    whole history, or if that match is an altered answer (rule 5); never if M answers an open call
    there."""
    if cut.full or (cut.last and cut.last.kind is MatchKind.REPLACED):
        return True
    answers = answered_from_before([cut.m[i] for i in cut.new])
    return evidence and answers.isdisjoint(open_calls(cut.rest))


def _with_something_new(cut: Cut) -> Cut:
    """Rule 6: a request always has something new; a prefill counts as new if H goes on after it."""
    last = cut.last
    if last is None or any(cut.m[i].role not in SYSTEM_ROLES for i in cut.new):
        return cut
    prefill = cut.m[last.i].role == "assistant"
    if _has_other_call_id(cut, last) or (prefill and not cut.rest):
        return cut
    at = _match_of_question(cut) if prefill else len(cut.matches) - 1
    first = cut.matches[at]
    new = range(first.i, len(cut.m))
    return replace(cut, matches=cut.matches[:at], new=new, rest=cut.log[first.j :])


def _has_other_call_id(cut: Cut, match: Match) -> bool:
    """Whether it is a tool result with another call id than the stored one."""
    return cut.m[match.i].answers != cut.log[match.j].card.answers


def _match_of_question(cut: Cut) -> int:
    """The index of the match of the question that a prefill answers; of the prefill without one."""
    asked = [n for n, match in enumerate(cut.matches) if cut.m[match.i].role == "user"]
    return asked[-1] if asked else len(cut.matches) - 1


def _chosen_alternates(
    m: Sequence[ChatMessage], found: Alignment, snapshot: Snapshot
) -> dict[int, Entry]:
    """Inactive choices of stored replies that M has instead of the active one, by index in M."""
    if not snapshot.alternates:
        return {}
    similar = [match for match in found.matches if match.kind is MatchKind.SIMILAR]
    pairs = [(x.i, find_alternate(snapshot, found.log[x.j].card, m[x.i].digest)) for x in similar]
    return {i: choice for i, choice in pairs if choice is not None}


def _dropped_after_altered(found: Alignment) -> dict[int, list[Entry]]:
    """By index in M, for each altered answer but the last match: the stored entries after it that
    are left out, which are the rest of its turn up to the next match."""
    return {
        a.i: [
            e for e in found.log[a.j + 1 : b.j] if e.position.turn == found.log[a.j].position.turn
        ]
        for a, b in pairwise(found.matches)
        if a.kind in (MatchKind.REPLACED, MatchKind.KEPT)
    }


def _replaced_answers(
    found: Alignment, chosen: Mapping[int, Entry], after_altered: Mapping[int, Sequence[Entry]]
) -> Iterator[Entry]:
    """Stored answers that the client edited or replaced by another choice, and the entries left
    out behind them."""
    for match in found.matches:
        if match.kind is MatchKind.REPLACED or match.i in chosen:
            yield found.log[match.j]
            yield from after_altered.get(match.i, ())


def _resent_results(cut: Cut, waiting: Mapping[str, Entry]) -> Iterator[Entry]:
    """The stored results that M sends again together with a missing one: the new ones replace them
    (rule 8).  If M has the calls too, rule 4 does that."""
    answers = {cut.m[i].answers for i in cut.new} - {None}
    if cut.matches or not answers:
        return
    heads = {e.card.id: e for call, e in waiting.items() if call in answers}
    for head in heads.values():
        if again := answers.intersection(head.card.calls) - waiting.keys():
            yield from (e for e in _rest_of_turn(cut.log, head) if e.card.answers in again)


def _rest_of_turn(log: Sequence[Entry], head: Entry) -> Iterator[Entry]:
    """The entries after ``head`` in its turn."""
    at = head.position
    return (e for e in log if e.position.turn == at.turn and e.position > at)


def _continued_entry(
    cut: Cut, recorded: Sequence[int], waiting: Mapping[str, Entry]
) -> Entry | None:
    """A stored message of the turn that the request continues; None if it begins a turn."""
    first, last = cut.m[recorded[0]] if recorded else None, cut.last
    if first is not None and first.role == "user":
        return None
    if first is not None and last is not None and first.answers in cut.m[last.i].calls:
        return cut.log[last.j]
    # Results that are sent again may come before the one that is waited for.
    answers = takewhile(bool, (cut.m[i].answers or "" for i in recorded))
    if called := next((waiting[call] for call in answers if call in waiting), None):
        return called
    if cut.rest and recorded:
        return cut.rest[-1]
    if last is not None:
        return cut.log[last.j]
    return cut.log[-1] if cut.log and not cut.full else None


# What is sent


def _order(
    cut: Cut, running: Entry | None, gaps: Gaps, after_altered: Mapping[int, Sequence[Entry]]
) -> Iterator[Entry | int]:
    """M in its order, with what it leaves out.

    Each entry stands in its gap, but what is left out of the turn that the request goes on with
    comes last before what is new: all of it if nothing of that turn matches, else what stands
    behind the last match.  Other turns behind the last match come before the running turn: before
    its first match, if ``running`` itself is left out.
    """
    turn = running.position.turn if running else None
    first_of_turn = next((match.i for match in cut.matches if cut.turn(match) == turn), None)
    end = cut.gap_places[-1]
    after_last = gaps.get(end, ())
    candidates = after_last if first_of_turn is not None else chain.from_iterable(gaps.values())
    own = sorted([e for e in candidates if e.position.turn == turn], key=_place)
    others = [e for e in after_last if e.position.turn != turn]
    others_at = first_of_turn if first_of_turn is not None and running in own else end
    hidden = {e.card.id for e in chain(own, *after_altered.values())}
    before = {i: without(entries, hidden) for i, entries in gaps.items() if i != end}
    for i, entries in ((others_at, others), (end, own)):
        before[i] = [*before.get(i, ()), *entries]
    return _interleaved(len(cut.m), before)


def _interleaved(size: int, before: Gaps) -> Iterator[Entry | int]:
    """The indexes of M, each after the entries that stand before it; then those at the end."""
    for i in range(size):
        yield from before.get(i, ())
        yield i
    yield from before.get(size, ())


def _gaps(cut: Cut, found: Alignment, superseded: AbstractSet[str]) -> Gaps:
    """The entries between the matches; in a log in order of arrival each stands before the next
    match of its turn, if there is one."""
    gaps, begin = dict[int, Sequence[Entry]](), 0
    ends = [*(match.j for match in cut.matches), len(cut.log)]
    for i, end in zip(cut.gap_places, ends, strict=True):
        if end > begin:
            gaps[i] = without(cut.log[begin:end], superseded)
        begin = end + 1
    return _by_turn(cut, gaps) if found.in_arrival_order else gaps


def _by_turn(cut: Cut, gaps: Gaps) -> Gaps:
    """The same entries, each moved before the next match of its own turn, if there is one."""
    others, own = defaultdict[int, list[Entry]](list), defaultdict[int, list[Entry]](list)
    next_of_turn: dict[int, int] = {}
    for i, match in reversed([*zip_longest(cut.gap_places, cut.matches)]):
        if match is not None:
            next_of_turn[cut.turn(match)] = i
        for entry in gaps.get(i, ()):
            turn = entry.position.turn
            (own[next_of_turn[turn]] if turn in next_of_turn else others[i]).append(entry)
    return {
        i: [*sorted(others[i], key=_place), *sorted(own[i], key=_place)] for i in {*others, *own}
    }


# What is recorded


def _altered_answers(cut: Cut, superseded: AbstractSet[str]) -> Iterator[NewMessage]:
    """New messages for the altered answers; with tool calls also for the results that follow."""
    ends = [*(x.i for x in cut.matches[1:]), 0]
    for match, end in zip(cut.matches, ends, strict=False):
        if match.kind is not MatchKind.REPLACED:
            continue
        card, message = cut.log[match.j].card, cut.m[match.i]
        yield NewMessage(match.i, joins=card.id, replaces=_replaced_card(cut, match.j, superseded))
        if message.calls or card.calls:
            following = range(match.i + 1, end)
            yield from (NewMessage(i, joins=card.id) for i in following if is_visible(cut.m[i]))


def _replaced_card(cut: Cut, j: int, superseded: AbstractSet[str]) -> Card:
    """The stored answer at j; if it is a prefill, the answer that follows it."""
    answers = (entry.card for entry in cut.log[j : j + 2])
    gone = (card for card in answers if card.evidence and card.id in superseded)
    return next(gone, cut.log[j].card)


def _new_messages(
    m: Sequence[ChatMessage],
    recorded: Iterable[int],
    running: Entry | None,
    again: Mapping[int, Card],
) -> Iterator[NewMessage]:
    for n, i in enumerate(recorded):
        opens = m[i].role == "user" or not (n or running)
        joins = running.card.id if running and not (n or opens) else None
        yield NewMessage(i, begins_turn=opens, joins=joins, replaces=again.get(i))
