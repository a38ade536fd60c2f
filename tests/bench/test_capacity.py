"""How much one worker carries is measured from end to end, and told."""

from __future__ import annotations

import pytest

from bench.__main__ import run_capacity
from bench.capacity import Capacity, Load, Plan, report

pytestmark = pytest.mark.release


@pytest.mark.slow
def test_a_tiny_run_counts_what_is_asked_and_what_it_takes() -> None:
    found = run_capacity(Plan(people=(2,), seconds=1.0, streams=5, redis=False))
    (load,) = found.loads
    assert len(load.took) >= 2
    assert load.recorded > len(load.took)
    assert load.cpu > 0
    assert load.disk > 0
    assert load.resident > 10_000_000
    assert found.descriptors >= 2  # the client's connection and the upstream's


def test_a_row_has_rates_and_shares() -> None:
    load = Load("redis", 4, 2.0, [0.01, 0.03] * 50, 5, 0.5, 130_000_000, 100, 400_000)
    row, note = report(Capacity([load], 2.0)).splitlines()[2:5:2]
    assert row == "| 4, Redis | 50 | 20.0 | 30.0 | 5.0% | 5.0 | 130 | 4.0 |  |"
    assert note == "An open stream takes 2.0 descriptors."
