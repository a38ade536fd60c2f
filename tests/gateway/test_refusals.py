"""What is known of refusals is bounded in number, size and time."""

from __future__ import annotations

from proxy.gateway.asking.refusals import MAX_KINDS, MAX_NAME_BYTES, SECONDS, RefusalKind, Refusals


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_is_known_for_a_while() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    refusals.add(RefusalKind("m"))
    assert RefusalKind("m") in refusals
    assert RefusalKind("other") not in refusals
    assert RefusalKind("m", b'"high"') not in refusals
    assert RefusalKind("m", own=True) not in refusals
    clock.now += SECONDS
    assert RefusalKind("m") not in refusals
    assert len(refusals) == 0


def test_a_refusal_that_does_not_hold_any_more_is_forgotten() -> None:
    refusals = Refusals(Clock())
    refusals.add(RefusalKind("m"))
    refusals.discard(RefusalKind("m"))
    refusals.discard(RefusalKind("m"))
    assert RefusalKind("m") not in refusals


def test_the_oldest_is_forgotten_where_there_are_too_many() -> None:
    refusals = Refusals(Clock())
    for number in range(10 * MAX_KINDS):
        refusals.add(RefusalKind("always"))
        refusals.add(RefusalKind(f"m{number}"))
    assert len(refusals) == MAX_KINDS
    assert RefusalKind("always") in refusals
    assert RefusalKind("m0") not in refusals


def test_a_name_without_measure_is_not_kept() -> None:
    refusals = Refusals(Clock())
    refusals.add(RefusalKind("m" * (MAX_NAME_BYTES + 1)))
    refusals.add(RefusalKind("m", b"1" * MAX_NAME_BYTES))
    assert len(refusals) == 0
