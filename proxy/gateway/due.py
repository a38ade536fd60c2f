"""Which work in the background an exchange asks for.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.gateway.situation import Situation
from proxy.memory.work import Due, Kind
from proxy.settings import ProfileSettings

NEVER = 10 * 365 * 86_400.0
"""Seconds; stands for a quiet that does not count."""


def due_of(situation: Situation, now: float) -> tuple[Due, ...]:
    """All that may be due once the reply is there; ``now`` in Unix seconds."""
    return (*_summary(situation, now), *_learning(situation, now))


def due_after_import(profile: ProfileSettings, user: str | None, now: float) -> tuple[Due, ...]:
    """What an import into a session of ``user`` asks for, under the default profile: at once."""
    kinds: list[Kind] = ["summary"] if profile.summary.enabled else []
    if user is not None and any(_paces(profile)):
        kinds.append("learning")
    return tuple(Due(kind=kind, profile="", at=now) for kind in kinds)


def _summary(situation: Situation, now: float) -> Iterator[Due]:
    """Only where the exchange fills the window: see ``transcribe``."""
    if situation.profile.summary.enabled:
        yield Due(kind="summary", profile=situation.identity.profile, at=now)


def _learning(situation: Situation, now: float) -> Iterator[Due]:
    """A person's sessions are learned from, a few turns at a time or when there is a pause."""
    paces = list(_paces(situation.profile))
    if paces and situation.identity.user is not None:
        yield Due(
            kind="learning",
            profile=situation.identity.profile,
            at=now,
            after=min(turns for turns, _ in paces),
            later=now + min(seconds or NEVER for _, seconds in paces),
        )


def _paces(profile: ProfileSettings) -> Iterator[tuple[int, float]]:
    """How many turns, or how many seconds of quiet, each feature waits."""
    for learner in (profile.facts, profile.profile):
        if learner.enabled:
            yield learner.after_turns, learner.after_seconds
    if profile.episodes.enabled and profile.episodes.by_model:
        yield profile.facts.after_turns, profile.facts.after_seconds
