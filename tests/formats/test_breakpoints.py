"""Where marks for the upstream's cache are put, in each format: the rules that need no proxy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.request import ChatRequest
from proxy.formats.breakpoints import BREAKPOINT, CACHE_CONTROL, MAX_MARKS, CacheMark, mark_for
from proxy.formats.chat_completions import ChatCompletions
from proxy.formats.format import Format
from proxy.formats.messages.messages import Messages
from proxy.formats.responses.api import Responses
from tests.support.upstream import anthropic, strict

Json = dict[str, Any]

CLAUDE, GPT = "anthropic/claude-sonnet-4.5", "gpt-5.6"
KEY = "0123"
MARK = {"cache_control": {"type": "ephemeral"}}
POINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}

CHAT: dict[str, Json] = {
    "s": {"role": "system", "content": "Be brief."},
    "u": {"role": "user", "content": "A question?"},
    "a": {"role": "assistant", "content": "An answer."},
    "c": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    "t": {"role": "tool", "tool_call_id": "k", "content": "A result."},
    "e": {"role": "user", "content": " "},
    "n": {"role": "user", "content": [{"type": "text", "text": "Own.", **POINT}]},
}
ITEMS: dict[str, Json] = {
    **{name: CHAT[name] for name in "suae"},
    "c": {"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"},
    "t": {"type": "function_call_output", "call_id": "k", "output": "A result."},
    "r": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    "n": {"role": "user", "content": [{"type": "input_text", "text": "Own.", **POINT}]},
}
BLOCKS: dict[str, Json] = {
    **{name: CHAT[name] for name in "uae"},
    "c": {"role": "assistant", "content": [anthropic.tool_use("f", {}, "k")]},
    "t": {"role": "user", "content": [anthropic.tool_result("k", "A result.")]},
    "h": {"role": "assistant", "content": [anthropic.text("Well."), anthropic.thinking("So.")]},
    "H": {"role": "assistant", "content": [anthropic.thinking("So.")]},
    "m": {"role": "user", "content": [anthropic.tool_result("k", "x"), anthropic.text("And?")]},
    "n": {"role": "user", "content": [{**anthropic.text("Own."), **MARK}]},
}


def marked(format: Format, body: Json, model: str) -> Json:
    found: Json = json.loads(format.with_cache_marks(json.dumps(body).encode(), model, KEY))
    return found


def places(listed: Sequence[Json]) -> list[int]:
    """Which messages carry a mark."""
    return [at for at, each in enumerate(listed) if '"cache_control"' in dumped(each)]


def dumped(each: Any) -> str:
    return json.dumps(each).replace("prompt_cache_breakpoint", "cache_control")


@pytest.mark.parametrize(
    ("said", "where"),
    [
        pytest.param("u", [], id="nothing-before-it"),
        pytest.param("su", [0], id="the-first-turn"),
        pytest.param("suau", [0, 1], id="the-second-turn"),
        pytest.param("suauau", [0, 1, 3], id="this-place-and-that-of-the-turn-before"),
        pytest.param("uauau", [0, 2], id="without-a-system-message"),
        pytest.param("uasu", [0], id="a-system-message-right-before-is-of-one-request"),
        pytest.param("uauctau", [0, 4], id="behind-the-results-of-an-older-loop"),
        pytest.param("suauct", [0, 1, 5], id="a-loop-runs"),
        pytest.param("suauctct", [0, 1, 5, 7], id="a-loop-goes-on"),
        pytest.param("suauctctct", [0, 1, 7, 9], id="only-its-newest-results"),
        pytest.param("suaucttctt", [0, 1, 6, 9], id="results-come-together"),
        pytest.param("aeau", [], id="an-empty-text-carries-none"),
        pytest.param("uaeau", [0], id="the-next-before-it-that-can"),
        pytest.param("sa", [], id="nobody-has-asked"),
    ],
)
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("model", [CLAUDE, GPT])
def test_marks_stand_behind_what_comes_again(
    api: str, model: str, said: str, where: list[int]
) -> None:
    if api == "chat":
        body = {"model": model, "messages": [CHAT[name] for name in said]}
        listed = marked(ChatCompletions(), body, model)["messages"]
        strict.few_marks(listed)
    else:
        body = {"model": model, "input": [ITEMS[name] for name in said]}
        listed = marked(Responses(), body, model)["input"]
    assert places(listed) == where


@pytest.mark.parametrize(
    ("said", "where"),
    [
        pytest.param("u", [], id="the-first-turn"),
        pytest.param("uau", [1], id="the-models-own-words-take-one"),
        pytest.param("uauau", [1, 3], id="and-the-place-before"),
        pytest.param("uhu", [1], id="a-text-before-a-thought"),
        pytest.param("uHu", [0], id="nothing-but-a-thought"),
        pytest.param("uauctct", [1, 4, 6], id="a-loop-goes-on"),
        pytest.param("uaucm", [1, 3], id="words-beside-results-are-a-question"),
    ],
)
@pytest.mark.parametrize("system", [False, True])
def test_the_messages_api_takes_marks_on_blocks(
    said: str, where: list[int], *, system: bool
) -> None:
    body: Json = {"model": "m", "max_tokens": 9, "messages": [BLOCKS[name] for name in said]}
    if system:
        body["system"] = "Be brief."
    found = marked(Messages(), body, "m")
    assert places(found["messages"]) == where
    if system:
        assert found["system"] == [{"type": "text", "text": "Be brief.", **MARK}]
    blocks = [x for message in found["messages"] for x in anthropic.blocks(message)]
    assert not any("cache_control" in x for x in blocks if x["type"] in ("thinking",))


@pytest.mark.parametrize(
    ("model", "mark"),
    [
        ("claude-opus-5", CACHE_CONTROL),
        ("bedrock/us.anthropic.Claude-3-7-sonnet", CACHE_CONTROL),
        ("gpt-5.6", BREAKPOINT),
        ("openai/gpt-5.6-terra", BREAKPOINT),
        ("openai.gpt-5.10", BREAKPOINT),
        ("gpt-6.1-sol", BREAKPOINT),
        ("gpt-10", BREAKPOINT),
        ("gpt-5.5", None),
        ("gpt-5", None),
        ("gpt-4.1", None),
        ("gpt-35-turbo", None),
        ("gpt-4o", None),
        ("gpt-oss-120b", None),
        ("llama3.2", None),
        ("", None),
        (None, None),
    ],
)
def test_only_models_that_are_known_to_take_marks_get_any(
    model: str | None, mark: CacheMark | None
) -> None:
    assert mark_for(model) is mark


@pytest.mark.parametrize(
    ("model", "named"),
    [("gpt-4o", True), ("o3", True), ("openai/gpt-5", True), ("chatgpt-4o-latest", True)]
    + [("gpt-oss-120b", False), ("llama3", False), (CLAUDE, False), ("m", False)],
)
def test_openais_models_are_told_the_conversation(model: str, named: bool) -> None:
    for format, listed in ((ChatCompletions(), "messages"), (Responses(), "input")):
        body = {"model": model, listed: [CHAT["u"]]}
        found = marked(format, body, model)
        assert found == (body | {"prompt_cache_key": KEY} if named else body)
        own = {**body, "prompt_cache_key": "mine"}
        assert marked(format, own, model) == own


@pytest.mark.parametrize("name", ["prompt_cache_options", "prompt_cache_retention"])
def test_a_client_that_says_how_to_cache_is_left_alone(name: str) -> None:
    body = {"model": GPT, "messages": [CHAT[x] for x in "suauau"], name: {"mode": "explicit"}}
    assert marked(ChatCompletions(), body, GPT) == body | {"prompt_cache_key": KEY}


def test_nothing_is_written_but_at_our_marks_unless_the_client_has_some() -> None:
    said = [CHAT[x] for x in "suauau"]
    mine = marked(ChatCompletions(), {"model": GPT, "messages": said}, GPT)
    assert mine["prompt_cache_options"] == {"mode": "explicit"}
    ours = marked(ChatCompletions(), {"model": GPT, "messages": [*said[:-1], CHAT["n"]]}, GPT)
    assert "prompt_cache_options" not in ours
    assert places(ours["messages"]) == [0, 1, 3, 5]


@pytest.mark.parametrize(
    ("own", "left"), [(0, [0, 1, 3]), (1, [0, 1, 3]), (2, [1, 3]), (3, []), (4, []), (7, [])]
)
def test_with_the_clients_own_there_are_never_more_than_four(own: int, left: list[int]) -> None:
    tools = [{"type": "function", "function": {"name": f"f{n}"}, **POINT} for n in range(own)]
    body = {"model": GPT, "messages": [CHAT[x] for x in "suauau"], "tools": tools}
    found = marked(ChatCompletions(), body, GPT)
    assert places(found["messages"]) == left  # one alone is of no use
    assert found["tools"] == tools
    assert max(own, MAX_MARKS) >= dumped(found).count('"cache_control"')


def test_a_mark_of_the_clients_stands_for_one_of_ours() -> None:
    body: Json = {"model": "m", "messages": [BLOCKS[x] for x in "uau"], "max_tokens": 9}
    body["messages"][1] = {"role": "assistant", "content": [{**anthropic.text("x"), **MARK}]}
    assert marked(Messages(), body, "m") == body


def test_what_is_kept_for_long_is_not_followed_by_what_is_not() -> None:
    long = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    last = {"role": "user", "content": [{**anthropic.text("x"), **long}]}
    body = {"model": "m", "max_tokens": 9, "messages": [BLOCKS["u"], BLOCKS["a"], last]}
    assert marked(Messages(), body, "m") == body


@pytest.mark.parametrize(
    "content", [[1], ["x"], {}, None, 7, [{"type": {}}], [{"text": 1}], "\ud83d"]
)
def test_what_cannot_be_read_is_left_to_the_upstream(content: Any) -> None:
    said = [{"role": role, "content": content} for role in ("system", "user", "assistant")]
    body = {"model": GPT, "max_tokens": 9, "messages": [*said, *said, CHAT["u"]]}
    for format in (ChatCompletions(), Messages()):
        found = marked(format, body, GPT)
        assert len(found["messages"]) == 7
    items = {"model": GPT, "input": [*said, {"type": "x"}, CHAT["u"]]}
    assert len(marked(Responses(), items, GPT)["input"]) == 5
    assert marked(Responses(), {"model": GPT, "input": "hello"}, GPT)["input"] == "hello"


FORMATS: dict[str, tuple[Format, dict[str, Json], str]] = {
    "chat": (ChatCompletions(), CHAT, "messages"),
    "responses": (Responses(), ITEMS, "input"),
    "messages": (Messages(), BLOCKS, "messages"),
}


@pytest.mark.parametrize("api", FORMATS)
@given(data=st.data())
def test_a_marked_request_means_what_it_meant(api: str, data: st.DataObject) -> None:
    format, said, listed = FORMATS[api]
    names = data.draw(st.lists(st.sampled_from(sorted(said)), max_size=30))
    model = data.draw(st.sampled_from([GPT, CLAUDE, "m"]))
    messages = [said[name] for name in names]
    body = {"model": model, "max_tokens": 9, listed: messages}
    raw = json.dumps(body).encode()
    sent = format.with_cache_marks(raw, model, KEY)
    before, after = format.read(raw, 1 << 20), format.read(sent, 1 << 20)
    assert isinstance(before, ChatRequest)
    assert isinstance(after, ChatRequest)
    assert [m.digest for m in after.messages] == [m.digest for m in before.messages]
    assert [m.digest for m in after.leading] == [m.digest for m in before.leading]
    assert not any(b"cache" in m.record for m in after.messages)
    ours = dumped(json.loads(sent)).count('"cache_control"') - dumped(body).count('"cache_control"')
    assert 0 <= ours <= MAX_MARKS
    if ours:
        strict.few_marks(json.loads(sent))
    changed = zip(json.loads(sent)[listed], messages, strict=True)
    assert all("cache" in json.dumps(now) for now, was in changed if now != was)
