"""What a profile of the configuration means for one request."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.chat.request import ChatRequest
from proxy.gateway.context import (
    ProfileRules,
    RequestContext,
    SideRequests,
    intent_of,
    load_options_of,
    max_learned_tokens,
    reserved_tokens,
    rules_of,
    window_of,
)
from proxy.gateway.identity import Identity
from proxy.memory.model import LoadOptions, SessionKey
from proxy.memory.prompt.compose import PromptRules
from proxy.memory.prompt.window import Window
from proxy.settings import ProfileSettings
from tests.support.talk.parsing import parse


def profile(**settings: Any) -> ProfileSettings:
    return ProfileSettings.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        pytest.param({}, Window(None, 6500, 0.7, True), id="default"),
        pytest.param({"window": "all"}, Window(None, None, 0.7, True), id="all"),
        pytest.param({"window": "none"}, Window(0, None, 0.7, True), id="none"),
        pytest.param({"window": "message_window"}, Window(40, None, 0.7, True), id="messages"),
        pytest.param(
            {"window": "message_window", "max_messages": 3, "evict_to": 1.0},
            Window(3, None, 1.0, True),
            id="sliding",
        ),
        pytest.param(
            {"max_tokens": 100, "start_on_user": False}, Window(None, 80, 0.7, False), id="a-fifth"
        ),
        pytest.param(
            {"recall": {"enabled": False}}, Window(None, 8000, 0.7, True), id="recall-is-off"
        ),
    ],
)
def test_a_window_is_what_the_profile_says(settings: dict[str, Any], window: Window) -> None:
    assert window_of(profile(**settings)) == window


def test_enabled_blocks_have_their_place_in_the_budget_used_or_not() -> None:
    base = profile()
    summary = base.summary.model_copy(update={"enabled": True, "max_tokens": 1000})
    recall = base.recall.model_copy(update={"max_tokens": 1500})
    both = base.model_copy(update={"summary": summary, "recall": recall})
    assert window_of(both).max_tokens == 8000 - 1000 - 1500
    assert window_of(both.model_copy(update={"max_tokens": 2000})).max_tokens == 0


def test_a_request_asks_for_what_its_window_can_show() -> None:
    where = context(Identity(session="s", profile="p", idempotency_key="k"))
    assert load_options_of(where, PromptRules(Window(3, 100))) == LoadOptions(
        "p", False, 3, 100, "k"
    )


def test_with_summaries_it_asks_for_what_none_covers_within_what_all_of_memory_may_take() -> None:
    where = context(Identity(session="s"), max_tokens=4000, summary={"enabled": True})
    rules = rules_of(request_of(b"[]"), where, len)
    assert rules.window.max_tokens == 4000 - 500 - 800
    assert load_options_of(where, rules).max_uncovered_tokens == 4000


def test_what_is_learned_has_its_room_reserved_once_it_is_switched_on() -> None:
    on = {"enabled": True, "max_tokens": 100}
    learned = {name: on for name in ("facts", "profile", "episodes", "instructions")}
    assert max_learned_tokens(profile()) == 0
    assert max_learned_tokens(profile(**learned)) == 400
    assert reserved_tokens(profile(**learned, recall={"enabled": False})) == 400


def test_a_summary_of_everything_leaves_nothing_to_the_window() -> None:
    everything = profile(window="all", summary={"enabled": True, "mode": "summary"})
    assert window_of(everything).max_messages == 0


@pytest.mark.parametrize(
    ("texts", "side"),
    [
        (("### Task:\nWrite a title", ""), True),
        (("", "### Task: tags"), True),
        (("hello", "be brief"), False),
        (("what is ### Task:?", ""), False),
        (("", ""), False),
        (("### task:", ""), False),
        (("Your task: Create a 2-4 word title for this conversation.\n\nRules:", ""), True),
        (("Generate a descriptive name", "Generate concise conversation titles."), True),
        (("<role>\nContext Extraction Assistant\n</role>\n\n<primary_objective>", ""), True),
        (("Provide a concise, 5-word-or-less title for the conversation, using its", ""), True),
        (("Given the following... please reply with a title for the chat that is", ""), True),
        (("Your task: Create a title for this song.", ""), False),
        (("Given the following chat, please reply with a title for the chat.", ""), False),
        (("Please: Provide a concise, 5-word-or-less title for the conversation,", ""), False),
        (("Here: Your task: Create a 2-4 word title for this conversation.", ""), False),
        (("", "Generate concise conversation titles. Then sing."), False),
        (("what is <role>\nContext Extraction Assistant\n</role>?", ""), False),
    ],
)
def test_side_requests_are_told_by_the_beginning_of_a_text(
    texts: tuple[str, str], side: bool
) -> None:
    assert SideRequests(profile().side_requests).matches(*texts) is side


def test_without_patterns_nothing_is_a_side_request() -> None:
    assert not SideRequests(()).matches("### Task:", "")


def test_a_pattern_that_matches_nothing_matches_no_empty_text() -> None:
    assert not SideRequests(("x*",)).matches("", "")


def request_of(messages: bytes) -> ChatRequest:
    request = parse(b'{"model":"m","messages":' + messages + b"}")
    assert request is not None
    return request


def context(identity: Identity, **settings: Any) -> RequestContext:
    return RequestContext(
        SessionKey("t", "s"), identity, ProfileRules.of(profile(**settings)), False
    )


@pytest.mark.parametrize(
    ("said", "configured", "history"),
    [(None, "auto", "auto"), (None, "full", "full"), ("delta", "full", "delta")],
)
def test_what_the_request_says_of_its_history_counts_before_the_profile(
    said: Any, configured: str, history: str
) -> None:
    where = context(Identity(session="s", history=said), client_history=configured)
    assert intent_of(request_of(b"[]"), where, 7.0).history == history


def test_rewind_retry_and_time_come_from_the_request() -> None:
    intent = intent_of(request_of(b"[]"), context(Identity(session="s", rewind=2, retry=True)), 7.0)
    assert (intent.rewind, intent.retry, intent.now) == (2, True, 7.0)


@pytest.mark.parametrize(
    ("messages", "remember", "system"),
    [
        pytest.param(b'[{"role":"user","content":"x"}]', True, True, id="remembered"),
        pytest.param(b'[{"role":"system","content":"x"}]', True, False, id="has-its-own"),
        pytest.param(b'[{"role":"developer","content":"x"}]', True, False, id="has-a-developer"),
        pytest.param(b'[{"role":"user","content":"x"}]', False, False, id="switched-off"),
    ],
)
def test_the_remembered_system_message_is_for_requests_without_one(
    messages: bytes, remember: bool, system: bool
) -> None:
    where = context(Identity(session="s"), remember_system=remember)
    assert rules_of(request_of(messages), where, len).inject_system is system


@pytest.mark.parametrize(("mode", "inject"), [("on", True), ("read", True), ("write", False)])
def test_mode_and_bound_of_a_request_rule_its_prompt(mode: Any, inject: bool) -> None:
    where = context(Identity(session="s", mode=mode, max_tokens=5))
    rules = rules_of(request_of(b"[]"), where, len)
    assert (rules.inject, rules.max_injected_tokens) == (inject, 5)
