"""Which work in the background an exchange asks for.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.gateway.situation import Situation
from proxy.memory.compose import Prompt
from proxy.memory.work import Due
from proxy.settings import ProfileSettings


def due_of(situation: Situation, prompt: Prompt | None, now: float) -> tuple[Due, ...]:
    """``prompt`` is None where the session could not be seen; ``now`` in Unix seconds."""
    return (*_summary(situation, prompt, now), *_learning(situation, now))


def _summary(situation: Situation, prompt: Prompt | None, now: float) -> Iterator[Due]:
    """What has left the window is to be summarised; in mode "summary" every turn leaves."""
    chosen = situation.profile.summary
    if chosen.enabled and (prompt is None or prompt.behind or chosen.mode == "summary"):
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
            later=now + min(seconds for _, seconds in paces),
        )


def _paces(profile: ProfileSettings) -> Iterator[tuple[int, float]]:
    """How many turns, or how many seconds of quiet, each feature waits."""
    for learner in (profile.facts, profile.profile):
        if learner.enabled:
            yield learner.after_turns, learner.after_seconds
    if profile.episodes.enabled and profile.episodes.by_model:
        yield profile.facts.after_turns, profile.facts.after_seconds
