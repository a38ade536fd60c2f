"""Which work in the background an exchange asks for."""

from __future__ import annotations

from typing import Any

from proxy.gateway.context import NEVER, ProfileRules, RequestContext
from proxy.gateway.identity import Identity
from proxy.gateway.recording.exchange_recorder import due_after_import, due_of
from proxy.memory.model import SessionKey, WorkRequest
from proxy.settings import ProfileSettings


def context(user: str | None = "kai", **memory: Any) -> RequestContext:
    identity = Identity(session="s", user=user, profile="p")
    profile = ProfileSettings.model_validate(memory)
    return RequestContext(SessionKey("t", "s"), identity, ProfileRules.of(profile), False)


ON = {"enabled": True}


def test_nothing_is_asked_for_where_nothing_is_switched_on() -> None:
    assert due_of(context(), 100.0) == ()


def test_a_summary_is_due_at_once_and_learning_after_some_turns_or_a_pause() -> None:
    summary, learning = due_of(context(summary=ON, facts=ON), 100.0)
    assert summary == WorkRequest(kind="summary", profile="p", due_at=100.0)
    assert learning == WorkRequest(
        kind="learning", profile="p", due_at=100.0, min_requests=5, due_if_fewer=160.0
    )


def test_the_more_impatient_of_two_decides() -> None:
    facts = {**ON, "after_turns": 9, "after_seconds": 5}
    (learning,) = due_of(context(facts=facts, profile={**ON, "after_turns": 2}), 100.0)
    assert (learning.min_requests, learning.due_if_fewer) == (2, 105.0)


def test_no_seconds_of_quiet_means_that_quiet_does_not_count() -> None:
    (learning,) = due_of(context(facts={**ON, "after_seconds": 0}), 100.0)
    assert learning.due_if_fewer == 100.0 + NEVER


def test_nothing_is_learned_of_nobody() -> None:
    assert due_of(context(user=None, facts=ON), 100.0) == ()


def test_an_import_is_summarised_and_learned_from_at_once() -> None:
    profile = context(summary=ON, facts=ON).profile
    kinds = {due.kind: due.due_at for due in due_after_import(profile, "kai", 7.0)}
    assert kinds == {"summary": 7.0, "learning": 7.0}
    assert [due.kind for due in due_after_import(profile, None, 7.0)] == ["summary"]
