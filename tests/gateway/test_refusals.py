"""What is known of refusals is bounded in number, size and time."""

from __future__ import annotations

from proxy.gateway.asking.refusals import (
    MAX_NAME_BYTES,
    MAX_REFUSALS,
    MAX_SESSIONS,
    MEDIA_SECONDS,
    SECONDS,
    KnownRefusals,
    Refusal,
    Refusals,
)
from proxy.memory.model import SessionKey

KEY = SessionKey("t", "s")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_refusal_is_known_for_a_while() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    refusals.add(Refusal("m"))
    assert Refusal("m") in refusals
    assert Refusal("other") not in refusals
    assert Refusal("m", b'"high"') not in refusals
    assert Refusal("m", has_client_tools=True) not in refusals
    clock.now += SECONDS
    assert Refusal("m") not in refusals
    assert len(refusals) == 0


def test_a_refusal_that_does_not_hold_any_more_is_forgotten() -> None:
    refusals = Refusals(Clock())
    refusals.add(Refusal("m"))
    refusals.discard(Refusal("m"))
    refusals.discard(Refusal("m"))
    assert Refusal("m") not in refusals


def test_the_oldest_is_forgotten_where_there_are_too_many() -> None:
    refusals = Refusals(Clock())
    for number in range(10 * MAX_REFUSALS):
        refusals.add(Refusal("always"))
        refusals.add(Refusal(f"m{number}"))
    assert len(refusals) == MAX_REFUSALS
    assert Refusal("always") in refusals
    assert Refusal("m0") not in refusals


def test_a_name_without_measure_is_not_kept() -> None:
    refusals = Refusals(Clock())
    refusals.add(Refusal("m" * (MAX_NAME_BYTES + 1)))
    refusals.add(Refusal("m", b"1" * MAX_NAME_BYTES))
    assert len(refusals) == 0


def media(message: str) -> Refusal:
    return Refusal("m", feature="media", message=message)


def test_media_are_refused_by_one_upstream_and_model_in_one_session_for_an_hour() -> None:
    clock = Clock()
    known = KnownRefusals(clock)
    known.add("up", KEY, [media("x.0"), Refusal("m")])
    clock.now += MEDIA_SECONDS / 2
    known.add("up", KEY, [media("y.0")])
    assert known.media("up", KEY, "m") == {"x.0", "y.0"}
    assert Refusal("m") not in known.of("up")
    others = [("other", KEY, "m"), ("up", SessionKey("t", "r"), "m"), ("up", KEY, "n")]
    assert not any(known.media(*other) for other in others)
    clock.now += MEDIA_SECONDS / 2
    assert known.media("up", KEY, "m") == {"y.0"}


def test_many_media_push_out_no_others() -> None:
    known = KnownRefusals(Clock())
    known.add("up", KEY, [media("x.0"), Refusal("m")])
    known.add("up", SessionKey("t", "r"), [media(f"{n}.0") for n in range(2 * MAX_REFUSALS)])
    assert len(known.media("up", SessionKey("t", "r"), "m")) == MAX_REFUSALS
    assert known.media("up", KEY, "m") == {"x.0"}
    assert Refusal("m") in known.of("up")
    for n in range(MAX_SESSIONS):
        known.add("up", SessionKey("t", f"{n}"), [media("z.0")])
    assert not known.media("up", KEY, "m")
