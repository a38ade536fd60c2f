"""Prompts with a summary: what it covers is not shown, and what nothing covers is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from proxy.chat.message import ChatMessage
from proxy.memory.model import Card, Entry, Position, Snapshot, Summary
from proxy.memory.prompt.compose import Prompt, PromptRules, SummaryRules, compose
from proxy.memory.prompt.window import UNBOUNDED, Window
from proxy.memory.reconciliation.match import Intent
from proxy.memory.reconciliation.reconcile import reconcile
from tests.support.talk.shorthand import message, rerendered

EACH = 10
"""Tokens of every message."""


def log_of(turns: int) -> tuple[Entry, ...]:
    """Turns of a question and an answer each."""
    entries = []
    for turn in range(turns):
        for place, role in enumerate(("user", "assistant")):
            seq = 2 * turn + place + 1
            card = Card(id=f"x{turn}.{place}", role=role, tokens=EACH, digest=f"{role} {turn}")
            entries.append(Entry(Position(2 * turn + 1, seq), card))
    return tuple(entries)


def session(turns: int, start: int, covered: int | None, *, stalled: bool = False) -> Snapshot:
    """``start`` and ``covered`` are numbers of turns: where the window starts, what is covered."""
    log = log_of(turns)
    summary = None
    if covered is not None:
        until = Position(2 * covered + 1, 2 * covered + 1)
        summary = Summary(text="so far", version=1, until=until, seen=2 * turns, tokens=5)
    return Snapshot(
        exists=True,
        start=Position(2 * start + 1, 2 * start + 1),
        log=log,
        messages=len(log),
        tokens=EACH * len(log),
        summary=summary,
        stalled=stalled,
    )


def prompt_of(
    snapshot: Snapshot, window: Window, most: int, cap: int | None = None, *said: ChatMessage
) -> Prompt:
    m = said or (message("new", "user"),)
    plan = reconcile(snapshot, m, Intent(), rerendered)
    rules = PromptRules(
        window=window, summaries=SummaryRules(most, frame_tokens=3), max_injected_tokens=cap
    )
    return compose(snapshot, plan, m, rules)


def turns_in(prompt: Prompt) -> list[int]:
    """The numbers of the stored turns that are shown."""
    entries = [piece for piece in prompt.pieces if not isinstance(piece, int)]
    return sorted({(entry.position.turn - 1) // 2 for entry in entries})


WIDE = Window(max_tokens=1000)


def test_what_a_summary_covers_is_not_shown_beside_it() -> None:
    prompt = prompt_of(session(6, start=3, covered=3), WIDE, 1000)
    assert prompt.summary is not None
    assert turns_in(prompt) == [3, 4, 5]
    assert prompt.injected == (6, 6 * EACH + 5 + 3)
    assert prompt.remaining == (UNBOUNDED.messages, 1000 - 6 * EACH)


def test_evicted_turns_stay_until_a_summary_covers_them() -> None:
    prompt = prompt_of(session(6, start=3, covered=1), WIDE, 1000)
    assert turns_in(prompt) == [1, 2, 3, 4, 5]
    assert prompt.remaining == (0, 0)
    assert prompt_of(session(6, start=3, covered=None), WIDE, 1000).summary is None
    assert turns_in(prompt_of(session(6, start=3, covered=None), WIDE, 1000)) == list(range(6))


def test_where_summarising_has_failed_the_window_alone_decides() -> None:
    assert turns_in(prompt_of(session(6, start=3, covered=1, stalled=True), WIDE, 1000)) == [
        3,
        4,
        5,
    ]


def test_where_summarising_has_failed_a_window_that_shows_nothing_does_not_decide() -> None:
    snapshot = session(6, start=6, covered=1, stalled=True)
    for window in (Window(max_messages=0), Window(max_tokens=0)):
        assert turns_in(prompt_of(snapshot, window, 1000)) == [1, 2, 3, 4, 5]
        newest = prompt_of(snapshot, window, 68)
        assert turns_in(newest) == [3, 4, 5]
        assert newest.injected.tokens == 68


def test_turns_that_wait_for_a_summary_leave_when_there_is_no_room_for_them() -> None:
    prompt = prompt_of(session(9, start=6, covered=1), Window(max_tokens=60), 108)
    assert prompt.injected.tokens <= 108
    assert turns_in(prompt) == [4, 5, 6, 7, 8]


def test_a_window_that_would_show_more_than_the_summary_leaves_shows_what_it_leaves() -> None:
    assert turns_in(prompt_of(session(6, start=1, covered=4), WIDE, 1000)) == [4, 5]


def test_a_late_answer_to_a_call_in_a_covered_turn_is_not_covered() -> None:
    summary = Summary(text="t", version=1, until=Position(5, 5), seen=8)
    assert summary.covers(Position(3, 3))
    assert not summary.covers(Position(3, 9))
    assert not summary.covers(Position(5, 5))


def test_under_a_bound_of_the_request_the_summary_goes_before_the_oldest_turns() -> None:
    prompt = prompt_of(session(6, start=3, covered=3), WIDE, 1000, 50)
    assert prompt.summary is not None
    assert turns_in(prompt) == [4, 5]
    tiny = prompt_of(session(6, start=3, covered=3), WIDE, 1000, 7)
    assert tiny.summary is None
    assert tiny.is_empty


@pytest.mark.parametrize("window", [Window(max_messages=0), Window(max_tokens=60)])
def test_under_a_bound_of_the_request_turns_that_wait_for_a_summary_stay_too(
    window: Window,
) -> None:
    snapshot = session(6, start=4, covered=1)
    assert turns_in(prompt_of(snapshot, window, 1000, 500)) == [1, 2, 3, 4, 5]
    tight = prompt_of(snapshot, window, 1000, 88)
    assert turns_in(tight) == [2, 3, 4, 5]
    assert tight.injected.tokens == 88


def test_a_summary_that_all_of_memory_has_no_room_for_is_not_sent() -> None:
    snapshot = session(6, start=3, covered=3)
    fits = prompt_of(snapshot, Window(max_tokens=0), 5 + 3)
    assert (fits.summary, fits.injected) == (snapshot.summary, (0, 5 + 3))
    assert prompt_of(snapshot, Window(max_tokens=0), 5 + 2).is_empty
    assert prompt_of(snapshot, Window(max_messages=6), 5 + 2).summary is None


def test_a_token_window_gives_way_to_a_summary_that_is_larger_than_its_room() -> None:
    snapshot = session(6, start=3, covered=3)
    assert snapshot.summary is not None
    large = replace(snapshot, summary=replace(snapshot.summary, tokens=37))
    assert turns_in(prompt_of(large, Window(max_tokens=60), 100)) == [3, 4, 5]
    assert turns_in(prompt_of(large, Window(max_tokens=60), 99)) == [4, 5]
    assert turns_in(prompt_of(replace(large, stalled=True), Window(max_tokens=60), 99)) == [4, 5]
    assert turns_in(prompt_of(large, Window(max_messages=6), 99)) == [3, 4, 5]


def test_a_client_that_says_all_of_it_itself_gets_no_summary_of_it() -> None:
    snapshot = session(4, start=2, covered=2)
    said = [message(entry.card.digest, entry.card.role) for entry in snapshot.log]
    prompt = prompt_of(snapshot, WIDE, 1000, None, *said, message("new", "user"))
    assert prompt.summary is None
    part = prompt_of(snapshot, WIDE, 1000, None, *said[4:], message("new", "user"))
    assert part.summary is not None


def test_without_summaries_in_the_profile_a_summary_that_is_there_changes_nothing() -> None:
    snapshot, m = session(6, start=2, covered=4), (message("new", "user"),)
    plan = reconcile(snapshot, m, Intent(), rerendered)
    plain = compose(snapshot, plan, m, PromptRules(window=WIDE))
    assert plain == compose(replace(snapshot, summary=None), plan, m, PromptRules(window=WIDE))


@pytest.mark.parametrize("stalled", [False, True])
@given(
    turns=st.integers(0, 12),
    start=st.integers(0, 12),
    covered=st.none() | st.integers(0, 12),
    limit=st.integers(0, 200),
    slack=st.integers(0, 200),
)
def test_no_turn_is_told_twice_and_none_is_lost_while_there_is_room(
    stalled: bool, turns: int, start: int, covered: int | None, limit: int, slack: int
) -> None:
    start, covered = min(start, turns), covered and min(covered, turns)
    snapshot = session(turns, start, covered, stalled=stalled)
    prompt = prompt_of(snapshot, Window(max_tokens=limit), limit + slack)
    assert prompt.injected.tokens <= limit + slack
    shown, told = turns_in(prompt), list(range(covered or 0)) if prompt.summary else []
    assert not set(shown) & set(told)
    assert shown == list(range(turns))[len(list(range(turns))) - len(shown) :]
    uncovered = _tokens(list(range(covered or 0, turns)))
    if not stalled and uncovered + 8 <= limit + slack:
        assert sorted({*shown, *range(covered or 0)}) == list(range(turns))


def _tokens(turns: Sequence[int]) -> int:
    return 2 * EACH * len(turns)
