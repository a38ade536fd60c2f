"""Decides which messages of a request are new.  Pure: from a snapshot and a request to a plan.

Clients send only what is new, or everything, or a window, or a preamble; in each case every message
must be stored once and sent once.  H is the active log, M the request's messages without leading
system messages.  The client's messages are never removed or reordered; only messages in the
snapshot can be superseded.  Numbered rules are those of docs/reconciliation.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from proxy.chat.canonical import are_similar, is_prefix
from proxy.chat.message import ChatMessage, text_of
from proxy.memory.model import Card, Entry, Snapshot
from proxy.memory.reconciliation.align import Match, MatchKind
from proxy.memory.reconciliation.layout import build_plan, without
from proxy.memory.reconciliation.match import (
    Alignment,
    AnswerLikeness,
    CompareAnswers,
    History,
    Intent,
    align_user_alone,
    align_without_answers,
    entries_after,
    is_visible,
    last_turns,
    match_messages,
)
from proxy.memory.reconciliation.plan import NewMessage, Plan
from proxy.memory.reconciliation.retry import entries_of_attempt, retried_exchange


def answer_comparison(bodies: Mapping[str, bytes]) -> CompareAnswers:
    """Makes the comparison of answers from the JSON of stored ones, by id."""

    def likeness(message: ChatMessage, card: Card) -> AnswerLikeness:
        body = bodies.get(card.id)
        if body is None:
            return ""
        mine, stored = message.text.strip(), text_of(body).strip()
        if not (card.incomplete and is_prefix(mine, stored)) and not are_similar(mine, stored):
            return ""
        return "continued" if mine != stored and mine.startswith(stored) else "same"

    return likeness


def reconcile(
    snapshot: Snapshot,
    m: Sequence[ChatMessage],
    intent: Intent,
    compare_answers: CompareAnswers,
    returned: AbstractSet[str] = frozenset(),
) -> Plan:
    """The plan for a request with the messages ``m``; needs a whole snapshot if M has answers.

    ``returned``: digests of answers with which M goes back to another branch, see
    ``DoubtfulAnswer``.
    """
    retried = retried_exchange(snapshot, m, intent)
    gone = _rewound_entries(snapshot.log, intent, retried)
    dropped = {entry.card.id for entry in gone}
    repeated = _recorded_of_request([e for e in gone if e.card.exchange == retried])
    log = without(snapshot.log, dropped - repeated)
    found, again = Alignment(log), dict[int, Card]()
    if intent.history != "delta":
        found = match_messages(log, snapshot, m, compare_answers, returned)
    if not found.matches:
        found = _without_answers(log, m, intent.history, whole=snapshot.whole)
    full, retry = intent.history == "full", retried is not None
    if not (found.matches or gone or full) and (onward := _plan_of_new_turn(log, m)):
        return onward
    if repeated:
        found, again = _without_repeated(found, repeated)
    return build_plan(m, found, snapshot, again, dropped, full=full, retry=retry)


def _without_answers(
    log: Sequence[Entry], m: Sequence[ChatMessage], history: History, *, whole: bool
) -> Alignment:
    """The alignment where M leaves out what the model said; ``whole``: nothing is before the log.

    A client that sends all of its history leaves out nothing.  One that sends only what is new
    still names the calls that it answers.
    """
    found = Alignment(log)
    if history != "full" and any(x.answers for x in m):
        found = align_without_answers(log, m)
    if not found.matches and history == "auto" and whole and len(m) > 1:
        found = align_user_alone(log, m)
    return found


def _plan_of_new_turn(log: Sequence[Entry], m: Sequence[ChatMessage]) -> Plan | None:
    """What ``build_plan`` makes of a request that begins a turn and repeats nothing, as nearly all
    do, at a fraction of the cost: the log stays, and all that was said is new.  None for others."""
    said = [i for i, x in enumerate(m) if is_visible(x)]
    if not said or m[said[0]].role != "user":
        return None
    return Plan(
        order=(*log, *range(len(m))),
        log=tuple(log),
        new_messages=tuple([NewMessage(i, begins_turn=m[i].role == "user") for i in said]),
        follows=log[-1].card.id if log else "",
    )


def _rewound_entries(log: Sequence[Entry], intent: Intent, retried: str | None) -> list[Entry]:
    """The entries that the request takes back: of a retry those of the attempt before, which has
    rewound already, else the turns that it rewinds; and what stands behind the message that it goes
    on from."""
    again = last_turns(log, intent.rewind) if retried is None else entries_of_attempt(log, retried)
    return [*again, *(entries_after(log, intent.continued_answer) or ())]


def _recorded_of_request(gone: Sequence[Entry]) -> set[str]:
    """What an attempt recorded of its request, if it had answers in a form of its own.

    What these stood for is superseded, so that without them M would match nothing there.
    """
    asked = [entry.card for entry in gone if entry.card.origin == "request"]
    return {card.id for card in asked} if any(x.role == "assistant" for x in asked) else set()


def _without_repeated(
    found: Alignment, repeated: AbstractSet[str]
) -> tuple[Alignment, dict[int, Card]]:
    """What an attempt recorded of its request is recorded anew by the next one.

    At M's end it is new; before that it takes the place of what was recorded.  Also, by its place
    in M, what was recorded of it before.
    """
    log = found.log
    again = {x.i: log[x.j].card for x in found.matches if log[x.j].card.id in repeated}
    matches = list(found.matches)
    while matches and matches[-1].i in again:
        matches.pop()
    inside = {log[x.j].card.id for x in matches if x.i in again}
    kept = [j for j, e in enumerate(log) if e.card.id not in repeated or e.card.id in inside]
    place = {j: n for n, j in enumerate(kept)}
    moved = [
        Match(x.i, place[x.j], MatchKind.REPLACED if x.i in again else x.kind) for x in matches
    ]
    return replace(found, log=[log[j] for j in kept], matches=tuple(moved)), again
