"""What was put into a prompt, as small as it can be kept, and read again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.memory.model import NO_TRACE, Card, Injection, Recalled, SessionKey
from proxy.memory.prompt.trace import (
    WINDOWS,
    KnownRuns,
    PromptTrace,
    Run,
    TracePiece,
    pieces_of,
    readable_trace,
    runs_of,
)

IDS = st.one_of(
    st.builds("{}.{}".format, st.sampled_from(["ex_1", "ex_2", "a.b"]), st.integers(0, 12)),
    st.text(max_size=6),
    st.sampled_from(["ex_1.01", "ex_1.٣", "ex_1.-1", "ex_1.", ".", "7", "ex_1.1e3"]),
)


KEY = SessionKey("t", "s")


def card(id: str, tokens: int = 1) -> Card:
    return Card(id=id, role="user", tokens=tokens, digest=id)


def noted(shown: PromptTrace) -> Injection:
    return Injection(trace=msgspec.Raw(msgspec.json.encode(shown)))


def recalled(kind: str, message: str = "", session: str = "", score: float = 0.0) -> Recalled:
    return Recalled(kind=kind, message=message, session=session, seq=1, tokens=3, score=score)


def kinds(pieces: list[TracePiece]) -> list[str]:
    return [piece.id or piece.kind for piece in pieces]


def test_neighbours_of_an_exchange_are_one_run() -> None:
    cards = [card("ex_1.0", 5), card("ex_1.1", 6), card("ex_2.0", 7), card("ex_1.2", 8)]
    assert runs_of(cards) == (
        Run("ex_1", 0, (5, 6)),
        Run("ex_2", 0, (7,)),
        Run("ex_1", 2, (8,)),
    )


def test_what_lies_between_makes_two_runs() -> None:
    assert runs_of([card("ex_1.0"), card("ex_1.2")]) == (Run("ex_1", 0, (1,)), Run("ex_1", 2, (1,)))


@given(
    st.lists(st.tuples(IDS, st.integers(0, 999)), max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 99)), max_size=6),
)
def test_runs_of_a_window_that_is_known_are_those_of_its_messages(
    messages: list[tuple[str, int]], looks: list[tuple[int, int, int]]
) -> None:
    known, cards = KnownRuns(), [card(id, tokens) for id, tokens in messages]
    for start, end, tokens in looks:
        window = cards[start:end]
        assert known.of(KEY, window) == runs_of(window)
        cards[end : end + 1] = [card(each.id, tokens) for each in cards[end : end + 1]]


def test_no_more_windows_are_known_than_there_is_room_for() -> None:
    known = KnownRuns()
    for n in range(WINDOWS + 3):
        known.of(SessionKey("t", str(n)), [card("ex_1.0")])
    assert len(known) == WINDOWS


@given(st.lists(st.tuples(IDS, st.integers(0, 999)), max_size=30))
def test_runs_say_the_same_as_the_messages(messages: list[tuple[str, int]]) -> None:
    shown = PromptTrace(messages_before_memories=99).limited(
        [card(id, tokens) for id, tokens in messages], 1000
    )
    read = readable_trace(noted(shown))
    assert read == shown
    assert [(piece.id, piece.tokens) for piece in pieces_of(read, [])] == [
        (id, tokens) for id, tokens in messages
    ]


def test_pieces_come_as_they_stand_in_the_prompt() -> None:
    sources = [
        recalled("instructions"),
        recalled("fact", "fact_1"),
        recalled("instruction", "ex_9.0", "other"),
        recalled("passage", "ex_7.0", "other", 0.9),
        recalled("passage", "ex_6.0", "other", 0.8),
    ]
    shown = PromptTrace(
        system_tokens=4,
        summary_tokens=20,
        summary_version=3,
        order=(0, 1, 2, 4, 3),
        memories_before_summary=1,
        messages_before_memories=1,
    ).limited([card("ex_1.0"), card("ex_1.1")], 100)
    pieces = pieces_of(shown, sources)
    assert kinds(pieces) == [
        "system",
        "instructions",
        "summary",
        "ex_1.0",
        "fact_1",
        "ex_9.0",
        "ex_6.0",
        "ex_7.0",
        "ex_1.1",
    ]
    assert pieces[2] == TracePiece("summary", 20, version=3)
    assert pieces[4] == TracePiece("fact", 3, "fact_1")
    assert pieces[6] == TracePiece("passage", 3, "ex_6.0", "other", 0.8)
    assert (shown.listed, shown.unlisted) == (9, 0)


@pytest.mark.parametrize("most", range(8))
def test_what_is_listed_is_the_beginning_of_all(most: int) -> None:
    sources = [recalled("fact", "fact_1"), recalled("passage", "ex_7.0", "other")]
    whole = PromptTrace(system_tokens=4, order=(0, 1), messages_before_memories=2)
    cards = [card("ex_1.0"), card("ex_1.1"), card("ex_2.0")]
    every = pieces_of(whole.limited(cards, 100), sources)
    shown = whole.limited(cards, most)
    assert pieces_of(shown, sources) == every[:most]
    assert shown.unlisted == max(0, len(every) - most)


def test_of_records_without_it_nothing_was_shown() -> None:
    assert readable_trace(Injection()) is None
    assert readable_trace(msgspec.json.decode(b"{}", type=Injection)) is None
    assert bytes(NO_TRACE) == b"null"


def test_a_window_of_forty_messages_takes_less_than_a_kilobyte() -> None:
    ids = [f"ex_{n:020d}.{i}" for n in range(20) for i in (0, 1)]
    shown = PromptTrace(messages_before_memories=40).limited([card(id, 120) for id in ids], 500)
    assert len(msgspec.json.encode(shown)) < 1000
