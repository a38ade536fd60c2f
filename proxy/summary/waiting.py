"""What of a session is still to be summarised, and how far a summary reaches then.  Pure.

A summary covers whole turns, oldest first.  Answers that have joined a turn after it was covered
come next, in the order in which they came, for a summary says only up to which seq it has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, takewhile

import msgspec
from msgspec.structs import replace

from proxy.memory.model import LOG_START, Entry, Position, Snapshot, Summary
from proxy.memory.prompt.window import Window, advance
from proxy.memory.reconciliation.match import open_calls
from proxy.settings.written import SummarySettings
from proxy.summary.lines import Count, TalkLine, pieces_of

NOTHING = Summary(text="", version=0)
"""Stands for the summary of a session that has none."""


class Turn(msgspec.Struct, frozen=True):
    """Neighbouring messages of one turn, none of them covered.  ``late``: others of it are."""

    entries: tuple[Entry, ...]
    late: bool

    @property
    def number(self) -> int:
        return self.entries[0].position.turn

    @property
    def began(self) -> float:
        """Unix seconds."""
        return self.entries[0].card.created_at

    @property
    def tokens(self) -> int:
        return sum(entry.card.tokens for entry in self.entries)


def moved_on(snapshot: Snapshot, window: Window) -> Snapshot:
    """The session as its next request will find it: with what its window evicts then evicted.

    So the summary can be there before it is needed.
    """
    room = window.reduced_by(snapshot.system_tokens)
    start = advance(snapshot.log, snapshot.start or LOG_START, room)
    return replace(snapshot, start=start)


def waiting_turns(snapshot: Snapshot, settings: SummarySettings) -> list[Turn]:
    """What is to be covered, in the order in which it has to be.

    With ``summary_buffer`` that is what the window has evicted, with ``summary`` everything that
    was said; in both without a turn that still goes on.
    """
    base = snapshot.summary or NOTHING
    bound = _bound(snapshot, settings)
    open = [entry for entry in snapshot.log if not base.covers(entry.position)]
    late = sorted((e for e in open if e.position < base.until), key=lambda e: e.position.seq)
    due = takewhile(lambda e: e.position.turn < bound, late)  # seen in this order or not at all
    fresh = (e for e in open if base.until <= e.position and e.position.turn < bound)
    return [*_turns(due, late=True), *_turns(fresh, late=False)]


def is_due(turns: Sequence[Turn], settings: SummarySettings) -> bool:
    """Are there enough of them to ask the model, however long the session has been quiet?"""
    if len({turn.number for turn in turns}) >= settings.after_turns:
        return True
    return 0 < settings.after_tokens <= sum(turn.tokens for turn in turns)


def up_to(goal: int, turns: Sequence[Turn]) -> list[Turn]:
    """The first of the turns, as long as none has a number above ``goal``."""
    return list(takewhile(lambda turn: turn.number <= goal, turns))


def within(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    """The first of the turns, as many as are about so large together, at least one with text."""
    taken: list[Turn] = []
    tokens = 0
    for turn in turns:
        if tokens and tokens + turn.tokens > max_tokens:
            break
        taken.append(turn)
        tokens += turn.tokens
    return taken


def reach(snapshot: Snapshot, taken: Sequence[Turn]) -> Summary:
    """The summary in force as it reaches with the turns ``taken``, the first of those waiting.

    Its text is as it was.
    """
    base, last, known = snapshot.summary or NOTHING, taken[-1], _ids(taken)
    until = base.until if last.late else _behind(snapshot, last.number)
    left = any(
        entry.position < until and not base.covers(entry.position) and entry.card.id not in known
        for entry in snapshot.log
    )
    newest = last.entries[-1] if left else max(snapshot.log, key=lambda e: e.position.seq)
    reaching = replace(base, until=until, seen=newest.position.seq)
    covered = (entry.position.seq for entry in covered_by(reaching, snapshot))
    return replace(reaching, covers_until=max(covered))


def covered_by(summary: Summary, snapshot: Snapshot) -> list[Entry]:
    return [entry for entry in snapshot.log if summary.covers(entry.position)]


def newest_seen(summary: Summary, snapshot: Snapshot) -> str | None:
    """The id of the message at the seq that a summary has seen; None if it is not in the log."""
    newest = (entry for entry in snapshot.log if entry.position.seq == summary.seen)
    return next((entry.card.id for entry in newest), None)


def _bound(snapshot: Snapshot, settings: SummarySettings) -> int:
    """The first turn that must not be covered."""
    if not snapshot.log:
        return 0
    waiting = open_calls(snapshot.log).values()
    unanswered = {entry.position.turn for entry in waiting if not entry.card.told}
    if settings.mode == "summary":
        return _unfinished(snapshot.log, unanswered)
    newest, start = snapshot.end.turn, (snapshot.start or LOG_START).turn
    return min(start, newest) if newest in unanswered else start


def _unfinished(log: Sequence[Entry], unanswered: Collection[int]) -> int:
    """The first turn behind the last one that is complete: that ends in an answer, its calls
    answered.
    """
    bound = log[-1].position.turn + 1
    for turn, entries in groupby(reversed(log), key=lambda entry: entry.position.turn):
        if next(entries).card.role == "assistant" and turn not in unanswered:
            break
        bound = turn
    return bound


def _behind(snapshot: Snapshot, number: int) -> Position:
    """Before the first turn behind this one; behind the whole log where there is none."""
    later = (e.position.turn for e in snapshot.log if e.position.turn > number)
    return Position(next(later, number + 1), 0)


def _ids(turns: Iterable[Turn]) -> set[str]:
    return {entry.card.id for turn in turns for entry in turn.entries}


def _turns(entries: Iterable[Entry], *, late: bool) -> list[Turn]:
    groups = groupby(entries, key=lambda entry: entry.position.turn)
    return [Turn(tuple(group), late) for _, group in groups]


class SummaryBatch(msgspec.Struct, frozen=True):
    """The first ``turns`` of those that wait.  ``parts`` hold all their lines, in order; none if
    there is nothing to read in them.
    """

    turns: int
    parts: tuple[str, ...]


def first_batch(turns: Sequence[Sequence[TalkLine]], max_tokens: int, count: Count) -> SummaryBatch:
    """The first of the turns, as many as fit into ``max_tokens``, but at least one with text."""
    texts: list[str] = []
    tokens = 0
    for turn in turns:
        text = "\n".join(map(str, turn))
        room = _room(text, count)
        if tokens and tokens + room > max_tokens:
            break
        texts.append(text)
        tokens += room
    taken = len(texts)
    if tokens > max_tokens:
        lines = list(chain.from_iterable(turns[:taken]))
        return SummaryBatch(taken, tuple(map(_opened, _dated_parts(lines, max_tokens, count))))
    return SummaryBatch(taken, (_opened("\n".join(filter(None, texts))),) if tokens else ())


OPEN = "[not answered yet]"
"""Marks a question that the lines end with: its answer is in those to come."""

_QUESTIONS = ("?", "？", "؟")


def _opened(text: str) -> str:
    return f"{text}\n{OPEN}" if text.rstrip().endswith(_QUESTIONS) else text


def _dated_parts(lines: Sequence[TalkLine], max_tokens: int, count: Count) -> Iterator[str]:
    """The parts, each with the day above it that the lines begin with."""
    day = "" if lines[0].speaker else f"{lines[0]}\n"
    room = max(2, max_tokens - count(day)) if day else max_tokens
    for part in _parts(lines[1:] if day else lines, room, count):
        yield f"{day}{part}"


def _parts(lines: Iterable[TalkLine], max_tokens: int, count: Count) -> Iterator[str]:
    """The lines in parts that fit; a line that does not fit in itself comes in pieces."""
    part: list[str] = []
    tokens = 0
    for piece in (piece for line in lines for piece in pieces_of(line, max_tokens - 1, count)):
        room = _room(piece, count)
        if part and tokens + room > max_tokens:
            yield "\n".join(part)
            part, tokens = [], 0
        part.append(piece)
        tokens += room
    if part:
        yield "\n".join(part)


def _room(text: str, count: Count) -> int:
    """Tokens of a text and of the line feed behind it."""
    return count(text) + 1 if text else 0
