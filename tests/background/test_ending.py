"""How long failures are waited for, and what exceptions mean."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.background.completion import BudgetSpent, Failed, NoCredential, NoModel, Paused, Refused
from proxy.background.runner import (
    MAX_DELAY_SECONDS,
    NO_MODEL_SECONDS,
    OTHER_PROCESS_SECONDS,
    Backoff,
    JobResult,
    result_of_error,
)

chances = st.floats(0, 1)


@given(
    first=st.floats(0.01, 100),
    most=st.floats(0.01, 10_000),
    attempts=st.integers(0, 10**9),
    chance=chances,
)
def test_a_wait_is_bounded_and_never_nothing(
    first: float, most: float, attempts: int, chance: float
) -> None:
    wait = Backoff(first, most).seconds(attempts, chance)
    assert 0.75 * min(first, most) <= wait <= most


@given(attempts=st.integers(0, 8), chance=chances, other=chances)
def test_each_wait_is_longer_than_the_one_before_whatever_the_chances(
    attempts: int, chance: float, other: float
) -> None:
    backoff = Backoff(1.0, 2.0**9)
    assert backoff.seconds(attempts, chance) < backoff.seconds(attempts + 1, other)


def test_what_exceptions_mean() -> None:
    now, wait = 1000.0, 8.0
    assert result_of_error(Refused("400"), now, wait) == JobResult("refused")
    assert result_of_error(BudgetSpent(2000.0), now, wait) == JobResult("put_off", 2000.0)
    assert result_of_error(BudgetSpent(80_000.0), now, wait) == JobResult(
        "put_off", now + MAX_DELAY_SECONDS
    )
    assert result_of_error(Paused(1030.0), now, wait) == JobResult(
        "put_off", 1030.0, backs_off=True
    )
    assert result_of_error(Paused(1001.0), now, wait) == JobResult(
        "put_off", 1008.0, backs_off=True
    )
    assert result_of_error(NoCredential(), now, wait) == JobResult(
        "put_off", now + OTHER_PROCESS_SECONDS
    )
    assert result_of_error(NoModel(), now, wait) == JobResult("put_off", now + NO_MODEL_SECONDS)
    assert result_of_error(Failed("500"), now, wait) == JobResult("failed", 1008.0, backs_off=True)
    assert result_of_error(Failed("429", 30), now, wait) == JobResult(
        "failed", 1030.0, backs_off=True
    )
    assert result_of_error(Failed("429", 1.0), now, wait) == JobResult(
        "failed", 1008.0, backs_off=True
    )
    assert result_of_error(ValueError(), now, wait) == JobResult("failed", 1008.0, backs_off=True)
