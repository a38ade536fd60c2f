"""The turns of a session that wait to be summarised, and the coverage of a summary.  Pure.

A summary covers whole turns, oldest first.  Answers that were added to a turn after it was covered
come next, by seq, since a summary stores only the last seq that it has seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby, takewhile

import msgspec
from msgspec.structs import replace

from proxy.memory.model import LOG_START, Entry, Position, Snapshot, Summary
from proxy.memory.prompt.window import Window, advance_start
from proxy.memory.reconciliation.match import open_calls
from proxy.settings.learned import SummarySettings
from proxy.summary.lines import Count, TranscriptLine, split_line

NO_SUMMARY_YET = Summary(text="", version=0)
"""Stands for the summary of a session that has none."""


class Turn(msgspec.Struct, frozen=True):
    """Consecutive uncovered messages of one turn.  ``late``: others of the turn are covered."""

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


def after_eviction(snapshot: Snapshot, window: Window) -> Snapshot:
    """The session as after the next request, with its window moved on.

    So the summary can be stored before it is needed.
    """
    room = window.reduced_by(snapshot.system_tokens)
    start = advance_start(snapshot.log, snapshot.start or LOG_START, room)
    return replace(snapshot, start=start)


def waiting_turns(snapshot: Snapshot, settings: SummarySettings) -> list[Turn]:
    """The turns to be covered, in the order in which they must be.

    In mode ``summary_buffer`` those that the window has evicted, in mode ``summary`` all of them;
    in both without an unfinished turn.
    """
    base = snapshot.summary or NO_SUMMARY_YET
    bound = _first_excluded_turn(snapshot, settings)
    open = [entry for entry in snapshot.log if not base.covers(entry.position)]
    late = sorted((e for e in open if e.position < base.until), key=lambda e: e.position.seq)
    due = takewhile(lambda e: e.position.turn < bound, late)  # seen in this order or not at all
    fresh = (e for e in open if base.until <= e.position and e.position.turn < bound)
    return [*_turns(due, late=True), *_turns(fresh, late=False)]


def is_due(turns: Sequence[Turn], settings: SummarySettings) -> bool:
    """Whether there are enough turns to summarise now, however recent they are."""
    if len({turn.number for turn in turns}) >= settings.after_turns:
        return True
    return 0 < settings.after_tokens <= sum(turn.tokens for turn in turns)


def take_up_to(goal: int, turns: Sequence[Turn]) -> list[Turn]:
    """The turns before the first whose number is above ``goal``."""
    return list(takewhile(lambda turn: turn.number <= goal, turns))


def take_tokens(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    """The first turns, as many as have about ``max_tokens`` together, at least one with text."""
    taken: list[Turn] = []
    tokens = 0
    for turn in turns:
        if tokens and tokens + turn.tokens > max_tokens:
            break
        taken.append(turn)
        tokens += turn.tokens
    return taken


def extended_to(snapshot: Snapshot, taken: Sequence[Turn]) -> Summary:
    """The summary in force with its coverage extended to the turns ``taken``, the first waiting.

    Its text is unchanged.
    """
    base, last, known = snapshot.summary or NO_SUMMARY_YET, taken[-1], _ids(taken)
    until = base.until if last.late else _position_after(snapshot, last.number)
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
    """The id of the last message that a summary has seen; None if it is not in the log."""
    newest = (entry for entry in snapshot.log if entry.position.seq == summary.seen)
    return next((entry.card.id for entry in newest), None)


def _first_excluded_turn(snapshot: Snapshot, settings: SummarySettings) -> int:
    """The first turn that must not be covered."""
    if not snapshot.log:
        return 0
    waiting = open_calls(snapshot.log).values()
    unanswered = {entry.position.turn for entry in waiting if not entry.card.call_text_tokens}
    if settings.mode == "summary":
        return _first_unfinished_turn(snapshot.log, unanswered)
    newest, start = snapshot.end.turn, (snapshot.start or LOG_START).turn
    return min(start, newest) if newest in unanswered else start


def _first_unfinished_turn(log: Sequence[Entry], unanswered: Collection[int]) -> int:
    """The first turn after the last complete one, which ends with an answer and has results of all
    its calls.
    """
    bound = log[-1].position.turn + 1
    for turn, entries in groupby(reversed(log), key=lambda entry: entry.position.turn):
        if next(entries).card.role == "assistant" and turn not in unanswered:
            break
        bound = turn
    return bound


def _position_after(snapshot: Snapshot, number: int) -> Position:
    """The position of the first turn after this one, or of the end of the log."""
    later = (e.position.turn for e in snapshot.log if e.position.turn > number)
    return Position(next(later, number + 1), 0)


def _ids(turns: Iterable[Turn]) -> set[str]:
    return {entry.card.id for turn in turns for entry in turn.entries}


def _turns(entries: Iterable[Entry], *, late: bool) -> list[Turn]:
    groups = groupby(entries, key=lambda entry: entry.position.turn)
    return [Turn(tuple(group), late) for _, group in groups]


class SummaryBatch(msgspec.Struct, frozen=True):
    """The first ``turns`` waiting turns; ``parts`` are their lines, split to fit into requests;
    empty if they have no text.
    """

    turns: int
    parts: tuple[str, ...]


def first_batch(
    turns: Sequence[Sequence[TranscriptLine]], max_tokens: int, count: Count
) -> SummaryBatch:
    """The first turns, as many as fit into ``max_tokens``, at least one with text."""
    texts: list[str] = []
    tokens = 0
    for turn in turns:
        text = "\n".join(map(str, turn))
        room = _line_tokens(text, count)
        if tokens and tokens + room > max_tokens:
            break
        texts.append(text)
        tokens += room
    taken = len(texts)
    if tokens > max_tokens:
        lines = list(chain.from_iterable(turns[:taken]))
        return SummaryBatch(
            taken, tuple(map(_mark_unanswered, _dated_parts(lines, max_tokens, count)))
        )
    return SummaryBatch(
        taken, (_mark_unanswered("\n".join(filter(None, texts))),) if tokens else ()
    )


UNANSWERED = "[not answered yet]"
"""Appended to lines that end with a question, whose answer is in the next batch."""

_QUESTIONS = ("?", "？", "؟")


def _mark_unanswered(text: str) -> str:
    return f"{text}\n{UNANSWERED}" if text.rstrip().endswith(_QUESTIONS) else text


def _dated_parts(lines: Sequence[TranscriptLine], max_tokens: int, count: Count) -> Iterator[str]:
    """The lines in parts, each beginning with the day line of the first."""
    day = "" if lines[0].speaker else f"{lines[0]}\n"
    room = max(2, max_tokens - count(day)) if day else max_tokens
    for part in _parts(lines[1:] if day else lines, room, count):
        yield f"{day}{part}"


def _parts(lines: Iterable[TranscriptLine], max_tokens: int, count: Count) -> Iterator[str]:
    """The lines in parts of at most ``max_tokens``; longer lines are split."""
    part: list[str] = []
    tokens = 0
    for piece in (piece for line in lines for piece in split_line(line, max_tokens - 1, count)):
        room = _line_tokens(piece, count)
        if part and tokens + room > max_tokens:
            yield "\n".join(part)
            part, tokens = [], 0
        part.append(piece)
        tokens += room
    if part:
        yield "\n".join(part)


def _line_tokens(text: str, count: Count) -> int:
    """Tokens of a text with its line feed."""
    return count(text) + 1 if text else 0
