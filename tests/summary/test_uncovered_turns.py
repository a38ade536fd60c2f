"""What waits to be summarised, and how far a summary reaches with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from proxy.memory.model import Entry, Position, Snapshot, Summary
from proxy.memory.prompt.window import Window
from proxy.settings.learned import SummarySettings
from proxy.summary.uncovered_turns import (
    after_eviction,
    extended_to,
    is_due,
    take_tokens,
    take_up_to,
    waiting_turns,
)
from tests.support.store.commits import card

BUFFER, ROLLING = SummarySettings(), SummarySettings(mode="summary")


def entry(turn: int, seq: int, role: str = "user", **fields: Any) -> Entry:
    return Entry(Position(turn, seq), card(f"x{seq}", 0, role, **fields))


def turn(number: int, *, calls: tuple[str, ...] = ()) -> list[Entry]:
    """A question and its answer at the seqs ``number`` and ``number + 1``."""
    return [entry(number, number), entry(number, number + 1, "assistant", calls=calls)]


def session(*entries: Entry, start: int | None = None, summary: Summary | None = None) -> Snapshot:
    log = tuple(sorted(entries, key=lambda e: e.position))
    begins = Position(start, start) if start is not None else None
    return Snapshot(exists=True, log=log, start=begins, summary=summary)


def waiting(snapshot: Snapshot, settings: SummarySettings = BUFFER) -> list[list[int]]:
    """The seqs of each turn that waits."""
    return [[e.position.seq for e in found.entries] for found in waiting_turns(snapshot, settings)]


THREE = [*turn(1), *turn(3), *turn(5)]
COVERED = Summary(text="", version=1, until=Position(5, 0), seen=6)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (None, []),
        (1, []),
        (3, [[1, 2]]),
        (5, [[1, 2], [3, 4]]),
        (7, [[1, 2], [3, 4], [5, 6]]),
    ],
)
def test_what_the_window_has_evicted_waits(start: int | None, expected: list[list[int]]) -> None:
    assert waiting(session(*THREE, start=start)) == expected


def test_a_turn_that_is_evicted_in_part_stays() -> None:
    snapshot = session(*THREE, start=3)
    in_the_middle = Snapshot(log=snapshot.log, start=Position(3, 4))
    assert waiting(in_the_middle) == [[1, 2]]


def test_an_unanswered_call_holds_back_the_newest_turn_alone() -> None:
    waits = session(*turn(1, calls=("c",)), *turn(3, calls=("d",)), start=9)
    assert waiting(waits) == [[1, 2]]
    assert waiting(waits, ROLLING) == []


def test_what_the_next_request_will_evict_waits_already() -> None:
    full = session(*THREE)
    assert waiting(after_eviction(full, Window(max_messages=6))) == []
    assert waiting(after_eviction(full, Window(max_messages=5))) == [[1, 2]]
    assert waiting(after_eviction(full, Window(max_messages=0))) == [[1, 2], [3, 4], [5, 6]]


def test_a_turn_that_still_goes_on_does_not_wait_though_the_window_is_full() -> None:
    full = session(*turn(1), *turn(3, calls=("c",)))
    assert waiting(after_eviction(full, Window(max_messages=0))) == [[1, 2]]


def test_what_is_covered_does_not_wait() -> None:
    assert waiting(session(*THREE, start=7, summary=COVERED)) == [[5, 6]]
    assert waiting(session(*THREE, start=5, summary=COVERED)) == []


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        pytest.param([entry(7, 7)], [[1, 2], [3, 4], [5, 6]], id="a-question-without-answer"),
        pytest.param(turn(7, calls=("c",)), [[1, 2], [3, 4], [5, 6]], id="an-open-call"),
        pytest.param(turn(7), [[1, 2], [3, 4], [5, 6], [7, 8]], id="complete"),
        pytest.param(
            [entry(7, 7), *turn(8)], [[1, 2], [3, 4], [5, 6], [7], [8, 9]], id="two-questions"
        ),
    ],
)
def test_in_mode_summary_all_up_to_the_last_complete_turn_waits(
    last: list[Entry], expected: list[list[int]]
) -> None:
    assert waiting(session(*THREE, *last), ROLLING) == expected


def test_late_answers_wait_first_in_the_order_they_came() -> None:
    late = [entry(3, 9, "tool"), entry(1, 10, "tool"), entry(3, 11, "assistant")]
    snapshot = session(*THREE, *late, *turn(7), start=7, summary=COVERED)
    assert waiting(snapshot) == [[9], [10], [11], [5, 6]]


def test_a_late_answer_in_the_window_holds_back_those_that_came_after_it() -> None:
    late = [entry(1, 9, "tool"), entry(3, 10, "tool"), entry(1, 11, "tool")]
    snapshot = session(*THREE, *late, start=3, summary=COVERED)
    assert waiting(snapshot) == [[9]]

    with_it = extended_to(snapshot, waiting_turns(snapshot, BUFFER))
    assert (with_it.until, with_it.seen, with_it.covers_until) == (Position(5, 0), 9, 9)


def test_a_summary_with_a_part_of_the_late_answers_has_seen_no_further() -> None:
    late = [entry(3, 9, "tool"), entry(1, 10, "tool"), entry(3, 11, "tool")]
    snapshot = session(*THREE, *late, start=5, summary=COVERED)
    turns = waiting_turns(snapshot, BUFFER)

    assert extended_to(snapshot, turns[:1]).seen == 9
    assert extended_to(snapshot, turns[:2]).seen == 10
    assert extended_to(snapshot, turns).seen == 11
    assert {extended_to(snapshot, turns[:n]).until for n in (1, 2, 3)} == {Position(5, 0)}


def test_a_summary_of_everything_reaches_behind_the_last_turn() -> None:
    snapshot = session(*THREE)
    whole = extended_to(snapshot, waiting_turns(snapshot, ROLLING))
    assert (whole.until, whole.seen, whole.covers_until) == (Position(6, 0), 6, 6)


def test_a_summary_keeps_its_text_and_version() -> None:
    base = Summary(text="so far", version=4, until=Position(3, 0), seen=6, covers_until=2)
    snapshot = session(*THREE, start=5, summary=base)
    further = extended_to(snapshot, waiting_turns(snapshot, BUFFER))
    assert (further.text, further.version, further.until) == ("so far", 4, Position(5, 0))


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        (SummarySettings(after_turns=2), True),
        (SummarySettings(after_turns=3), False),
        (SummarySettings(after_turns=3, after_tokens=40), True),
        (SummarySettings(after_turns=3, after_tokens=41), False),
    ],
)
def test_enough_turns_or_tokens_are_due(settings: SummarySettings, due: bool) -> None:
    turns = waiting_turns(session(*THREE, start=5), BUFFER)
    assert is_due(turns, settings) is due


@pytest.mark.parametrize(
    ("tokens", "most", "taken"),
    [
        ([10, 10, 10], 25, 2),
        ([10, 10, 10], 30, 3),
        ([90, 10], 25, 1),
        ([0, 90, 10], 25, 2),
        ([0, 0], 25, 2),
    ],
)
def test_turns_are_taken_as_long_as_they_fit(tokens: Sequence[int], most: int, taken: int) -> None:
    log = [entry(n, n, tokens=size) for n, size in enumerate(tokens, 1)]
    turns = waiting_turns(session(*log, start=99), BUFFER)
    assert len(take_tokens(turns, most)) == taken


def test_turns_are_taken_up_to_a_number() -> None:
    turns = waiting_turns(session(*THREE, start=7), BUFFER)
    assert [found.number for found in take_up_to(3, turns)] == [1, 3]
    assert take_up_to(0, turns) == []
