"""What an index knows of itself."""

from __future__ import annotations

import msgspec
import pytest

from proxy.recall.indexing.state import (
    FORMAT,
    MAX_DISMISSED,
    MAX_STANDING,
    State,
    dismissed_in,
    read_state,
    write_state,
)


def test_what_is_written_is_read() -> None:
    state = State(
        passages=3, length=40, sessions=2, standing=(1, 2), caught_up_at=7.5
    ).with_dismissed("a:0")
    assert read_state(write_state(state)) == state
    assert state.dismissed == ("a:0",)


def test_an_index_that_is_not_there_has_the_first_state() -> None:
    assert read_state(b"") == State()
    assert State().passages == 0 and State().caught_up_at == 0


@pytest.mark.parametrize(
    "other", [f"[{FORMAT + 1}]", f"[{FORMAT + 1},1,2,3,[4],[],0.0,7]", "[0]", "[]", '["1"]']
)
def test_an_index_of_another_format_is_none_of_ours(other: str) -> None:
    assert read_state(other.encode()) is None


@pytest.mark.parametrize("broken", [b"{}", b"\xff", b"[1"])
def test_what_no_release_has_written_is_an_error(broken: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_state(broken)


def test_passages_are_added_with_their_lengths_and_wishes() -> None:
    state = State().extended(b"ab", [5, 7], [1], 1).extended(b"c", [3], [2], 2)
    assert (state.passages, state.length, state.sessions) == (3, 15, 2)
    assert state.standing == (1, 2)


def test_of_wishes_and_dismissals_the_newest_are_kept() -> None:
    state = State().extended(b"", [1] * 100, range(100), 1)
    assert state.standing == tuple(range(100))[-MAX_STANDING:]
    for n in range(MAX_DISMISSED + 5):
        state = state.with_dismissed(f"{n}")
    assert len(state.dismissed) == MAX_DISMISSED
    assert (state.dismissed[0], state.dismissed[-1]) == ("5", f"{MAX_DISMISSED + 4}")


def test_a_wish_is_dismissed_once_however_often() -> None:
    assert State().with_dismissed("a").with_dismissed("b").with_dismissed("a").dismissed == (
        "b",
        "a",
    )


def test_wishes_dismissed_in_another_format_stay_so() -> None:
    old = b'[1,9,80,2,[3],["w1","w2"],7.5,1.0,{}]'
    assert read_state(old) is None
    assert dismissed_in(old) == ("w1", "w2")
    assert dismissed_in(write_state(State().with_dismissed("a"))) == ("a",)


@pytest.mark.parametrize("none", [b"", b"[0]", b"{}", b"[1,2,3,4,[],7]"])
def test_what_tells_of_no_dismissed_wishes_has_none(none: bytes) -> None:
    assert dismissed_in(none) == ()
