"""A model that says when it may be asked again is believed, and one that hangs is left alone."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

from proxy.background.completion import (
    Assignment,
    CompletionError,
    Denied,
    Failed,
    Paused,
    Unreadable,
)
from proxy.background.pauses import MAX_PAUSE_SECONDS, ModelPauses
from tests.support.clock import Clock

NOW = 1_700_000_000.0


class Desk:
    """Asks with pauses."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.pauses = ModelPauses(self.clock)

    def asking(self, model: str = "m", **whom: Any) -> AbstractContextManager[None]:
        about = Assignment(**{"tenant": "t", "feature": "facts", "text": "", **whom})
        return self.pauses.count_failures(about, model)

    def ask(self, failure: Exception | None = None, seconds: float = 0.0, **whom: Any) -> bool:
        """Ask; it takes so long, and this comes of it.  Was it asked?"""
        try:
            with self.asking(**whom):
                self.clock.now += seconds
                if failure is not None:
                    raise failure
        except Paused:
            return False
        except CompletionError as raised:
            assert raised is failure
        return True

    def waits(self, **whom: Any) -> float:
        """Seconds for which it is left alone."""
        try:
            with self.asking(**whom):
                raise ZeroDivisionError
        except ZeroDivisionError:
            return 0.0
        except Paused as paused:
            return paused.until - self.clock()


@pytest.mark.parametrize(
    ("whom", "asked"),
    [
        pytest.param({}, False, id="the-same"),
        pytest.param({"feature": "summary"}, False, id="for-something-else"),
        pytest.param({"model": "another"}, True, id="another-model"),
        pytest.param({"tenant": "another"}, True, id="another-tenant"),
        pytest.param({"url": "http://there"}, True, id="another-place"),
        pytest.param({"key": "sk-own"}, True, id="another-key"),
    ],
)
def test_how_long_to_wait_is_said_to_all_that_would_ask_with_that_key(
    whom: dict[str, Any], asked: bool
) -> None:
    desk = Desk()
    assert desk.ask(Failed("429", 30.0))
    assert desk.ask(**whom) is asked
    desk.clock.now += 30
    assert desk.ask(**whom)


def test_what_is_answered_meanwhile_does_not_shorten_the_wait() -> None:
    desk = Desk()
    with desk.asking():
        desk.ask(Failed("429", 30.0))
    assert not desk.ask()


def test_a_model_that_hangs_again_is_left_alone_for_longer_each_time() -> None:
    desk, waits = Desk(), list[float]()
    for _ in range(8):
        assert desk.ask(Failed("no answer in time"), seconds=120.0)
        waits.append(desk.waits())
        assert desk.waits(feature="summary") == 0.0
        desk.clock.now += waits[-1]
    assert waits == [0.0, 120.0, 240.0, 360.0, 480.0, *[MAX_PAUSE_SECONDS] * 3]


@pytest.mark.parametrize("answer", [None, Denied("401"), Unreadable("no JSON")])
def test_one_that_has_answered_between_is_asked(answer: Exception | None) -> None:
    desk = Desk()
    for _ in range(8):
        assert desk.ask(Failed("no answer in time"), seconds=120.0)
        assert desk.ask(answer)


def test_what_fails_at_once_is_asked_on() -> None:
    desk = Desk()
    assert all(desk.ask(Failed("503"), seconds=0.0) for _ in range(100))


def test_those_that_were_under_way_together_have_failed_together() -> None:
    desk = Desk()
    under_way = [desk.asking() for _ in range(10)]
    for each in under_way:
        each.__enter__()
    desk.clock.now += 10.0
    for each in under_way:
        assert not each.__exit__(Failed, Failed("502"), None)
    assert desk.waits() == 0.0


@pytest.mark.parametrize(
    "failures", [[Failed("429", 30.0)], [Failed("no answer in time"), Failed("no answer in time")]]
)
def test_one_that_was_left_alone_is_asked_once_the_clock_is_put_back(
    failures: list[Failed],
) -> None:
    desk = Desk()
    assert all([desk.ask(failure, seconds=20.0) for failure in failures])
    assert desk.waits() > 0.0
    desk.clock.now -= 3600.0
    assert desk.waits() == 0.0
