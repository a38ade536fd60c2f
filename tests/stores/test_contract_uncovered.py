"""How far back a load reaches for what no summary covers, on every back end."""

from __future__ import annotations

import pytest

from proxy.memory.model import LoadOptions, Position, SessionKey, Snapshot, Summary, WindowMove
from proxy.memory.store import Store
from tests.support.store.commits import TOKENS, chat, draft, record, summary

TURN = 2 * TOKENS
"""Tokens of a turn."""


async def eight_turns(store: Store, key: SessionKey, until: Position | None) -> None:
    """Turn xN has the seqs 2N - 1 and 2N; the window of profile p starts at x7."""
    for n in range(1, 8):
        await store.commit(key, chat(f"x{n}"))
    await store.commit(key, chat("x8", window=WindowMove(profile="p", start="x7.0")))
    if until is not None:
        made = Summary(text="in short", version=1, until=until, seen=16)
        assert await store.put_summary(key, made, 0, 0)


def turns(snapshot: Snapshot) -> list[str]:
    """The exchanges whose bodies came, each once."""
    return list(dict.fromkeys(id.partition(".")[0] for id in snapshot.bodies))


def since(first: int, last: int = 8) -> list[str]:
    return [f"x{n}" for n in range(first, last + 1)]


@pytest.mark.parametrize("whole", [False, True], ids=["bounded", "whole"])
@pytest.mark.parametrize(
    ("until", "uncovered", "first"),
    [
        pytest.param(None, None, 7, id="not-asked-for"),
        pytest.param(None, 100 * TURN, 1, id="no-summary"),
        pytest.param(None, 8 * TURN, 1, id="no-summary-all-within-the-bound"),
        pytest.param(None, 8 * TURN - 1, 1, id="no-summary-a-token-less"),
        pytest.param(None, 5 * TURN, 3, id="no-summary-more-than-five-turns"),
        pytest.param(None, 5 * TURN - 1, 4, id="no-summary-whole-turns"),
        pytest.param(None, 0, 7, id="never-later-than-the-window"),
        pytest.param(Position(9, 9), None, 7, id="a-summary-not-asked-for"),
        pytest.param(Position(9, 9), 100 * TURN, 5, id="as-far-as-the-summary"),
        pytest.param(Position(9, 10), 100 * TURN, 5, id="whole-turns-at-the-summary"),
        pytest.param(Position(9, 9), 4 * TURN, 5, id="as-far-as-the-summary-just-so"),
        pytest.param(Position(9, 9), 3 * TURN - 1, 6, id="not-farther-than-the-bound"),
        pytest.param(Position(9, 9), 0, 7, id="a-summary-and-no-bound-to-speak-of"),
        pytest.param(Position(13, 13), 100 * TURN, 7, id="a-summary-up-to-the-window"),
        pytest.param(Position(15, 15), 100 * TURN, 7, id="a-summary-into-the-window"),
        pytest.param(Position(99, 99), 100 * TURN, 7, id="a-summary-of-everything"),
    ],
)
async def test_a_log_begins_where_the_summary_ends(
    store: Store,
    key: SessionKey,
    until: Position | None,
    uncovered: int | None,
    first: int,
    whole: bool,
) -> None:
    await eight_turns(store, key, until)
    seen = await store.load(
        key, LoadOptions(profile="p", whole=whole, max_uncovered_tokens=uncovered)
    )
    assert turns(seen) == since(first)
    assert len(seen.log) == (16 if whole else len(seen.bodies))
    assert seen.whole is whole and (seen.messages, seen.tokens) == (16, 8 * TURN)


@pytest.mark.parametrize(
    ("until", "uncovered", "first"),
    [
        pytest.param(None, 100 * TURN, 1, id="no-summary"),
        pytest.param(Position(9, 9), 100 * TURN, 5, id="as-far-as-the-summary"),
        pytest.param(Position(9, 9), 2 * TURN, 6, id="not-farther-than-the-bound"),
        pytest.param(Position(15, 15), 100 * TURN, 7, id="never-later-than-without"),
        pytest.param(Position(9, 9), None, 7, id="not-asked-for"),
    ],
)
async def test_a_window_that_has_never_moved_bounds_a_log_too(
    store: Store,
    key: SessionKey,
    until: Position | None,
    uncovered: int | None,
    first: int,
) -> None:
    await eight_turns(store, key, until)
    for options in (
        LoadOptions(profile="q", max_messages=2, max_uncovered_tokens=uncovered),
        LoadOptions(profile="q", max_tokens=TURN, max_uncovered_tokens=uncovered),
    ):
        assert turns(await store.load(key, options)) == since(first)
    unbounded = await store.load(key, LoadOptions(profile="q", max_uncovered_tokens=uncovered))
    assert turns(unbounded) == since(1)


async def test_what_joined_a_summarised_turn_is_left_where_it_is(
    store: Store, key: SessionKey
) -> None:
    await eight_turns(store, key, Position(9, 9))
    options = LoadOptions(profile="p", max_uncovered_tokens=100 * TURN)
    await store.commit(key, record("x9", draft("x9", 0, "tool", turn="x2.0")))
    assert turns(await store.load(key, options)) == ["x2", "x9", *since(5)]
    await store.commit(key, chat("x10"))
    assert turns(await store.load(key, options)) == [*since(5), "x10"]
    await store.commit(key, record("x11", draft("x11", 0, "tool", turn="x5.0")))
    await store.commit(key, chat("x12"))
    seen = turns(await store.load(key, options))
    assert seen == ["x5", "x11", *since(6), "x10", "x12"]


async def test_a_summary_that_is_dropped_is_not_reckoned_with(
    store: Store, key: SessionKey
) -> None:
    await eight_turns(store, key, Position(9, 9))
    await store.put_summary(key, summary(13, seen=16), 1, None)
    options = LoadOptions(profile="p", max_uncovered_tokens=100 * TURN)
    assert turns(await store.load(key, options)) == since(7)
    await store.commit(key, record("x9", superseded=("x5.1",)))
    assert turns(await store.load(key, options)) == since(5)
    await store.drop_summaries(key)
    assert turns(await store.load(key, options)) == since(1)


async def test_a_log_without_messages_is_empty_however_far_it_reaches(
    store: Store, key: SessionKey
) -> None:
    move = WindowMove(profile="p", start="x1.0")
    await store.commit(key, chat("x1", window=move))
    await store.commit(key, record("x2", superseded=("x1.0", "x1.1")))
    seen = await store.load(key, LoadOptions(profile="p", max_uncovered_tokens=100))
    assert seen.log == () and not seen.bodies
