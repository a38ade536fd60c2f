"""Matches the messages of a request with stored ones.  Pure; uses ``align``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Literal

import msgspec
from msgspec.structs import replace

from proxy.chat.message import SYSTEM_ROLES, ChatMessage
from proxy.memory.model import Card, Entry, Snapshot
from proxy.memory.reconciliation.align import AnyMessage, Log, Match, MatchKind, align, last_run
from proxy.memory.reconciliation.rounds import reorder_results, skips_stored_results

History = Literal["auto", "full", "delta"]


AnswerLikeness = Literal["", "same", "continued"]

CompareAnswers = Callable[[ChatMessage, Card], AnswerLikeness]
"""Whether an assistant message of the request is the stored answer re-rendered ("same"), or that
with more text after it ("continued").  Both have the same calls."""


class Intent(msgspec.Struct, frozen=True, gc=False):
    """What the client says about its request apart from the messages."""

    history: History = "auto"
    rewind: int = 0
    continued_answer: str = msgspec.field(name="on", default="")
    """The id of the stored answer that it continues: what came after that is taken back."""
    branch: tuple[Entry, ...] = msgspec.field(name="way", default=())
    """The entries up to that answer, if the log is another branch: these become the log."""
    retry: bool = False
    """The client's SDK marks it as an automatic retry (``X-Stainless-Retry-Count`` above 0), and
    the attempt before it is not known to have failed."""
    now: float = 0.0


def is_visible(message: ChatMessage) -> bool:
    return message.role not in SYSTEM_ROLES and not message.blank


def open_calls(log: Sequence[Entry]) -> dict[str, Entry]:
    """The unanswered calls by id; of calls with the same id the latest."""
    waiting: dict[str, Entry] = {}
    for entry in log:
        card = entry.card
        for call in card.calls:
            waiting[call] = entry
        if card.answers is not None:
            waiting.pop(card.answers, None)
    return waiting


def answered_from_before(m: Sequence[ChatMessage]) -> set[str]:
    """The ids of the calls that M answers and does not make itself."""
    own = {call for x in m for call in x.calls}
    return {x.answers for x in m if x.answers is not None} - own


def last_turns(log: Sequence[Entry], n: int) -> list[Entry]:
    if not n:
        return []
    dropped = set(sorted({entry.position.turn for entry in log})[-n:])
    return [entry for entry in log if entry.position.turn in dropped]


def entries_after(log: Sequence[Entry], message: str) -> list[Entry] | None:
    """The entries with a higher seq than the message, of any turn; None if it is not in the log."""
    if not message:
        return None
    seq = next((e.position.seq for e in reversed(log) if e.card.id == message), None)
    return None if seq is None else [e for e in log if e.position.seq > seq]


MAX_COMPARED_BODIES = 500
"""Stored answers that are loaded at most to be compared with re-rendered ones."""


class Alignment(msgspec.Struct, frozen=True, gc=False):
    """Matches in terms of M and ``log``; ``evidence``: their last run holds a real answer.

    ``in_arrival_order``: the log is in the order in which its messages came, not in that of turns.
    ``keeps_order``: all of the log is in its own order; else results are in the request's order.
    """

    log: Sequence[Entry]
    matches: tuple[Match, ...] = ()
    evidence: bool = False
    in_arrival_order: bool = False
    keeps_order: bool = True

    def is_better_than(self, other: Alignment) -> bool:
        """Whether it has all matches of the other and more, or the same and ends later in the
        log."""
        mine, theirs = self._pairs(), other._pairs()
        return mine > theirs or (mine == theirs and self._unmatched_end() < other._unmatched_end())

    def _pairs(self) -> set[tuple[int, str]]:
        return {(match.i, self.log[match.j].card.id) for match in self.matches}

    def _unmatched_end(self) -> int:
        return len(self.log) - self.matches[-1].j if self.matches else len(self.log)


def match_messages(
    log: Sequence[Entry],
    snapshot: Snapshot,
    m: Sequence[ChatMessage],
    compare_answers: CompareAnswers,
    returned: AbstractSet[str],
) -> Alignment:
    """Align M with the log; or with the results in M's order, or with the log as it came, if that
    is better.

    A late answer to a call joins the call's turn; the client may send it where it came.
    """
    if not any(x.role == "assistant" for x in m):
        return Alignment(log)  # nothing could be aligned, and most requests are so
    aligned = partial(_align_visible, snapshot, m, compare_answers, returned)
    found = aligned(log)
    if len(found.matches) == len(log):
        return found
    if skips_stored_results({match.i for match in found.matches}, log, m):
        reordered = aligned(reorder_results(log, m))
        if len(reordered.matches) > len(found.matches):
            found = replace(reordered, keeps_order=False)
    came = sorted(log, key=attrgetter("position.seq"))
    if came == list(log):
        return found
    other = aligned(reorder_results(came, m))
    return (
        replace(other, in_arrival_order=True, keeps_order=False)
        if other.is_better_than(found)
        else found
    )


def align_without_answers(log: Sequence[Entry], m: Sequence[ChatMessage]) -> Alignment:
    """Align a running turn that M has without what the model said in it, as clients send it that
    name a conversation which has that.

    M has the turn's question, alone or behind earlier ones, then its results so far, and behind
    them one that a call waits for.  No matches where M begins with anything else.
    """
    said = [i for i, x in enumerate(m) if is_visible(x)]
    waiting = open_calls(log)
    first = next((n for n, i in enumerate(said) if m[i].answers in waiting), None)
    if first is None or m[said[0]].role != "user":
        return Alignment(log)
    turn = waiting[m[said[first]].answers or ""].position.turn
    stored = [j for j, e in enumerate(log) if e.position.turn <= turn and _is_input(e.card)]
    question = max(n for n in range(first) if m[said[n]].role == "user")
    end = question + sum(log[j].position.turn == turn for j in stored)
    mine, theirs = said[:end], stored[len(stored) - end :]
    equal = [_digest_and_call(m[i]) for i in mine] == [
        _digest_and_call(log[j].card) for j in theirs
    ]
    goes_on = any(m[i].answers in waiting for i in said[end : end + 1])  # ids may come again
    return _alignment_of(log, mine, theirs) if equal and goes_on else Alignment(log)


def align_user_alone(log: Sequence[Entry], m: Sequence[ChatMessage]) -> Alignment:
    """Align all that the user has said in a whole log, sent without answers and with more behind
    it, as programs do that keep the questions alone.

    What was said twice in one request may be sent once.  Where M leaves out anything else, it is
    said again; what follows may go on from there.
    """
    mine = _said_by_user_alone(m)
    theirs = _said_by_user(log)
    again = {j for j, k in pairwise(theirs) if _is_repeated(log[j].card, log[k].card)}
    once = [j for j in theirs if j not in again]
    for stored in (theirs, once, _since_resent(log, theirs, m, mine)):
        known = mine[: len(stored)]
        equal = [m[i].digest for i in known] == [log[j].card.digest for j in stored]
        if stored and equal and len(known) < len(mine):
            return _alignment_of(log, known, stored)
    return Alignment(log)


def _alignment_of(log: Sequence[Entry], mine: Sequence[int], theirs: Sequence[int]) -> Alignment:
    pairs = zip(mine, theirs, strict=True)
    return Alignment(log, tuple([Match(i, j, MatchKind.EQUAL) for i, j in pairs]))


def may_be_user_alone(log: Sequence[Entry], m: Sequence[ChatMessage]) -> bool:
    """Whether ``align_user_alone`` may find matches, judged by the end of the log: M has all that
    the user said there."""
    if len(m) < 2:  # as nearly all requests are that have no answer
        return False
    theirs, mine = _said_by_user(log), _said_by_user_alone(m)
    digests = {m[i].digest for i in mine}
    newest = _since_resent(log, theirs, m, mine) or theirs
    return bool(newest) and all(log[j].card.digest in digests for j in newest)


def _since_resent(
    log: Sequence[Entry], theirs: Sequence[int], m: Sequence[ChatMessage], mine: Sequence[int]
) -> Sequence[int]:
    """Indexes from the last request on that sent several messages and began as M: after an edit the
    client sends all of them.  A single repeated message may be meant as a new one."""
    first = m[mine[0]].digest if mine else ""
    for n in range(len(theirs) - 2, -1, -1):
        card, following = log[theirs[n]].card, log[theirs[n + 1]].card
        if card.digest != first or following.digest == first:
            continue
        begins = not n or log[theirs[n - 1]].card.exchange != card.exchange
        if begins and card.exchange == following.exchange:
            return theirs[n:]
    return ()


def _said_by_user(log: Sequence[Entry]) -> list[int]:
    return [j for j, e in enumerate(log) if e.card.role == "user" and not e.card.blank]


def _said_by_user_alone(m: Sequence[ChatMessage]) -> list[int]:
    """The visible messages of M; none where any is not the user's."""
    mine = [i for i, x in enumerate(m) if is_visible(x)]
    return mine if all(m[i].role == "user" for i in mine) else []


def _is_repeated(card: Card, following: Card) -> bool:
    return (card.exchange, card.digest) == (following.exchange, following.digest)


_digest_and_call = attrgetter("digest", "answers")


def _is_input(card: Card) -> bool:
    """Whether it is neither blank nor an answer."""
    return card.role != "assistant" and not card.blank


def _align_visible(
    snapshot: Snapshot,
    m: Sequence[ChatMessage],
    compare_answers: CompareAnswers,
    returned: AbstractSet[str],
    log: Sequence[Entry],
) -> Alignment:
    """Align visible messages only: blank ones and later system ones do not separate neighbours."""
    mine = [i for i, x in enumerate(m) if is_visible(x)]
    theirs = [j for j, e in enumerate(log) if not e.card.blank]
    cards = [log[j].card for j in theirs]

    def similar(i: int, j: int) -> bool:
        message, card = m[mine[i]], cards[j]
        return bool(
            find_alternate(snapshot, card, message.digest) or compare_answers(message, card)
        )

    seen = [m[i] for i in mine]
    client_made = {
        j for j, card in enumerate(cards) if card.role == "assistant" and not card.evidence
    }
    found = align(seen, cards, similar, client_made, returned)
    found = _with_edited_answers(found, seen, cards, returned)
    if not found:
        return Alignment(log)
    evidence = _repeats_an_answer([cards[x.j] for x in last_run(found, cards)], cards)
    matches = [*found, *_edited_between(found, seen, cards)]
    matches.sort()
    if len(seen) < len(m) or len(cards) < len(log):
        matches = [Match(mine[x.i], theirs[x.j], x.kind) for x in matches]
    matches = [_as_whole_answer(match, log, m, compare_answers) for match in matches]
    matches = _in_client_form(_keep_altered(matches, log), log, m)
    return Alignment(log, tuple(_with_choice(matches, log, snapshot, m)), evidence)


def _repeats_an_answer(run: Sequence[Card], cards: Sequence[Card]) -> bool:
    """Rule 4: whether the run has an answer of the upstream's.

    An answer with the text of one that the client made up, such as a greeting, does not count.
    """
    if not any(card.evidence for card in run):
        return False
    client_made = Counter(card.digest for card in cards if not card.evidence)
    return bool(Counter(card.digest for card in run) - client_made)


def bodies_to_compare(snapshot: Snapshot, m: Sequence[ChatMessage]) -> list[str]:
    """Ids of stored answers that may be re-rendered in M and whose text the snapshot lacks."""
    if not any(x.role == "assistant" for x in m):
        return []
    cards = [entry.card for entry in snapshot.log]
    digests = {card.digest for card in cards}
    pairs = zip(m, m[1:], strict=False)
    asked = {a.digest for a, b in pairs if b.role == "assistant" and b.digest not in digests}
    if asked.isdisjoint(digests):
        return []
    stored, wanted = Log(cards), dict[str, None]()
    for j, card in enumerate(cards):
        k = stored.next_answer(j) if card.digest in asked else None
        if k is not None and cards[k].id not in snapshot.bodies:
            wanted[cards[k].id] = None
    return list(wanted)[-MAX_COMPARED_BODIES:]


def find_alternate(snapshot: Snapshot, card: Card, digest: str) -> Entry | None:
    """The inactive choice of the same reply that has this digest."""
    for entry in snapshot.alternates.get(card.exchange, ()):
        if entry.card.digest == digest:
            return entry
    return None


def _with_edited_answers(
    matches: Sequence[Match],
    m: Sequence[AnyMessage],
    h: Sequence[AnyMessage],
    returned: AbstractSet[str],
) -> tuple[Match, ...]:
    """Add the altered answers directly after a run (those inside runs are found already).

    If the next plain answer is matched already, the call before it may be the altered one.
    """
    taken = {x.i for x in matches}
    ends = [*(x.j for x in matches[1:]), len(h)]
    open_ends = [
        (x, end)
        for x, end in zip(matches, ends, strict=False)
        if x.i + 1 < len(m) and x.i + 1 not in taken and x.kind is not MatchKind.REPLACED
    ]
    if not any(m[x.i + 1].role == "assistant" for x, _ in open_ends):
        return tuple(matches)
    log, added = Log(h, returned), list[Match]()
    for match, end in open_ends:
        i = match.i + 1
        if m[i].role != "assistant":
            continue
        free = [j for j in log.alterable_by(m[i], match.j) if j < end]
        added += [Match(i, j, MatchKind.REPLACED) for j in free[:1]]
    return tuple(sorted((*matches, *added)))


def _edited_between(
    matches: Sequence[Match], m: Sequence[AnyMessage], h: Sequence[AnyMessage]
) -> Iterator[Match]:
    """Matches of questions and results that the client edited while it kept their answers.  On both
    sides it is the only message between the same two matches, or before the first."""
    for before, after in pairwise((Match(-1, -1, MatchKind.EQUAL), *matches)):
        if (after.i - before.i, after.j - before.j) != (2, 2):
            continue
        mine, theirs = m[after.i - 1], h[after.j - 1]
        same = (mine.role, mine.answers) == (theirs.role, theirs.answers)
        if same and mine.role != "assistant" and before.kind is not MatchKind.REPLACED:
            yield Match(after.i - 1, after.j - 1, MatchKind.KEPT)


def _as_whole_answer(
    match: Match, log: Sequence[Entry], m: Sequence[ChatMessage], compare_answers: CompareAnswers
) -> Match:
    """REPLACED instead of SIMILAR if M has the whole of an answer that is stored incomplete, or as
    two."""
    if match.kind is not MatchKind.SIMILAR:
        return match
    card = log[match.j].card
    went_on = [e.card.role for e in log[match.j + 1 : match.j + 2]] == ["assistant"]
    if not (card.incomplete or went_on):
        return match
    whole = compare_answers(m[match.i], card) == "continued"
    return match._replace(kind=MatchKind.REPLACED) if whole else match


def _keep_altered(matches: Sequence[Match], log: Sequence[Entry]) -> list[Match]:
    """KEPT instead of REPLACED for an altered answer if later messages of its turn match.

    A replacement would have to be before them, and history is append-only.
    """
    kept, later = list(matches), set[int]()
    for n in range(len(matches) - 1, -1, -1):
        turn = log[matches[n].j].position.turn
        if matches[n].kind is MatchKind.REPLACED and turn in later:
            kept[n] = matches[n]._replace(kind=MatchKind.KEPT)
        later.add(turn)
    return kept


def _with_choice(
    matches: list[Match], log: Sequence[Entry], snapshot: Snapshot, m: Sequence[ChatMessage]
) -> list[Match]:
    """SIMILAR instead of REPLACED where M has another stored choice of the newest answer."""
    last = matches[-1]
    if last.kind is not MatchKind.REPLACED or last.j < len(log) - 1:
        return matches
    if find_alternate(snapshot, log[last.j].card, m[last.i].digest) is None:
        return matches
    return [*matches[:-1], last._replace(kind=MatchKind.SIMILAR)]


def _in_client_form(
    matches: list[Match], log: Sequence[Entry], m: Sequence[ChatMessage]
) -> list[Match]:
    """REPLACED for a call that differs only in ids, if new results answer it: else these would
    answer an unknown id.  Its results so far are recorded anew with it.
    """
    new = range(matches[-1].i + 1, len(m))
    answered = {m[i].answers for i in new if m[i].answers is not None}
    for n in range(len(matches) - 1, -1, -1):
        message, card = m[matches[n].i], log[matches[n].j].card
        if message.role != "assistant":
            continue
        if message.calls != card.calls and not answered.isdisjoint(message.calls):
            return [*matches[:n], matches[n]._replace(kind=MatchKind.REPLACED)]
        break
    return matches
