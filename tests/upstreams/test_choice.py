"""Which upstream a request goes to, by name and by model."""

from __future__ import annotations

import pytest

from proxy.chat.models.limits import MAX_NAME
from proxy.errors import ProxyError
from proxy.upstreams.choice import REMEMBERED, Upstreams
from tests.support.upstream.several import destination

SEVERAL = Upstreams(
    [
        destination("anthropic", "claude-*", "anthropic/*"),
        destination("local", "qwen?:*b", "[lL]lama*", "gpt-4o-mini"),
        destination("router", "*/*", "claude-*"),
        destination("by-name"),
    ]
)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param("claude-sonnet-5", "anthropic", id="the-first-that-matches"),
        pytest.param("anthropic/claude-x", "anthropic", id="the-first-of-two"),
        pytest.param("openai/gpt/4", "router", id="slashes-are-characters"),
        pytest.param("qwen3:8b", "local", id="question-mark"),
        pytest.param("Llama-4", "local", id="set"),
        pytest.param("gpt-4o-mini", "local", id="a-whole-name"),
        pytest.param("gpt-4o-mini-2024", None, id="no-part-of-a-name"),
        pytest.param("my-claude-1", None, id="from-the-beginning"),
        pytest.param("Claude-1", None, id="in-its-own-case"),
        pytest.param("gpt-5", None, id="nobodys"),
        pytest.param("", None, id="empty"),
        pytest.param("claude-\n", "anthropic", id="any-character"),
        pytest.param("claude-" + "x" * MAX_NAME, "anthropic", id="without-end"),
    ],
)
def test_a_model_leads_to_the_first_upstream_whose_glob_it_matches(
    model: str, name: str | None
) -> None:
    found = SEVERAL.of_model(model)
    assert (found.name if found else None) == name


def test_a_name_leads_to_the_upstream_of_that_name() -> None:
    assert [SEVERAL.by_name(each.name) for each in SEVERAL.listed] == list(SEVERAL.listed)


def test_default_is_the_upstream_of_the_settings() -> None:
    assert SEVERAL.by_name("default") is None


@pytest.mark.parametrize("name", ["Local", "nobody", "http://evil.example/v1", "127.0.0.1:1"])
def test_another_name_is_refused_and_no_name_is_told(name: str) -> None:
    with pytest.raises(ProxyError) as caught:
        SEVERAL.by_name(name)
    assert (caught.value.status, caught.value.code) == (400, "unknown_upstream")
    assert not any(each.name in caught.value.message for each in SEVERAL.listed)


def test_names_that_clients_make_up_are_not_remembered_for_ever() -> None:
    for number in range(2 * REMEMBERED):
        SEVERAL.of_model(f"made-up-{number}")
    assert SEVERAL._remembered.cache_info().currsize == REMEMBERED


def test_of_a_name_without_end_the_beginning_is_remembered() -> None:
    SEVERAL._remembered.cache_clear()
    for end in "abc":
        assert SEVERAL.of_model("x" * MAX_NAME + end) is None
    assert SEVERAL._remembered.cache_info().currsize == 1
