"""What a request says with our tools in it, and which requests take none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat import jsontext
from proxy.chat.request import ChatRequest
from proxy.chat.tools.offer import (
    NAMES,
    SAVE,
    SEARCH,
    RoundRequests,
    is_name_taken,
    may_offer,
    refuses_tools,
    with_tools,
)
from tests.support.talk.parsing import parse

OWN = {"type": "function", "function": {"name": "f"}}
SAID = [{"role": "user", "content": "x"}]


def body(**more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": SAID, **more}).encode()


def request(**more: Any) -> ChatRequest:
    found = parse(body(**more))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("more", "may"),
    [
        pytest.param({}, True, id="plain"),
        pytest.param({"tools": [OWN]}, True, id="tools"),
        pytest.param({"tools": [OWN], "tool_choice": "auto"}, True, id="auto"),
        pytest.param({"tools": [OWN], "parallel_tool_calls": False}, True, id="one-at-a-time"),
        pytest.param({"tools": None, "tool_choice": None}, True, id="nulls"),
        pytest.param({"tools": []}, True, id="no-tools"),
        pytest.param({"tools": [OWN], "tool_choice": "none"}, False, id="none"),
        pytest.param({"tools": [OWN], "tool_choice": "required"}, False, id="required"),
        pytest.param({"tools": [OWN], "tool_choice": {"type": "x"}}, False, id="named"),
        pytest.param({"tool_choice": "auto"}, False, id="a-choice-of-nothing"),
        pytest.param({"parallel_tool_calls": True}, False, id="parallel-nothing"),
        pytest.param({"tools": "x"}, False, id="no-list"),
        pytest.param({"tools": [OWN] * 126}, True, id="just-enough-room"),
        pytest.param({"tools": [OWN] * 127}, False, id="too-many"),
        pytest.param({"n": 1}, True, id="one-choice"),
        pytest.param({"n": 2}, False, id="two-choices"),
        pytest.param({"functions": [{}]}, False, id="functions"),
        pytest.param({"audio": {"voice": "x"}}, False, id="audio"),
        pytest.param({"prediction": {"content": "x"}}, False, id="prediction"),
        pytest.param({"grammar": "root ::= x"}, False, id="grammar"),
    ],
)
def test_tools_are_offered_where_all_else_still_holds(more: dict[str, Any], may: bool) -> None:
    assert may_offer(request(**more)) is may


@pytest.mark.parametrize(
    ("tool", "taken"),
    [
        pytest.param(OWN, False, id="another"),
        pytest.param({"type": "function", "function": {"name": SAVE}}, True, id="save"),
        pytest.param({"type": "function", "function": {"name": SEARCH}}, True, id="search"),
        pytest.param({"type": "custom", "custom": {"name": SAVE}}, True, id="custom"),
        pytest.param({"function": {"name": f"{SEARCH}_all"}}, True, id="longer"),
        pytest.param({"function": {"name": "memory"}}, False, id="shorter"),
        pytest.param({"function": {"name": 5}}, False, id="no-name"),
        pytest.param("x", False, id="no-tool"),
    ],
)
def test_a_name_is_taken_by_a_tool_that_could_be_mistaken(tool: object, taken: bool) -> None:
    assert is_name_taken(request(tools=[OWN, tool])) is taken


def test_the_clients_tools_keep_their_bytes_and_their_places() -> None:
    raw = b'{"tools":[ {"z" : 1.0} ],"model":"m", "messages":[]}'
    fields = with_tools(jsontext.fields(raw), NAMES)
    assert list(fields) == ["tools", "model", "messages"]
    assert fields["tools"].startswith(b'[{"z" : 1.0},{"type":"function"')
    names = [tool["function"]["name"] for tool in json.loads(fields["tools"])[1:]]
    assert names == [SAVE, SEARCH]


def test_the_functions_are_described_by_strict_schemas() -> None:
    for tool in json.loads(with_tools({}, NAMES)["tools"]):
        parameters = tool["function"]["parameters"]
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == list(parameters["properties"])


@pytest.mark.parametrize("own", [None, b"[]", b"null", b'[{"z":1}]'])
def test_the_last_request_has_the_clients_tools_as_they_came(own: bytes | None) -> None:
    fields = {"model": b'"m"', "messages": b'[{"role":"user","content":"x"}]'}
    asked = {**fields, "tools": own} if own else fields
    sent = jsontext.join_fields(with_tools(asked, NAMES))
    requests = RoundRequests(sent, own)
    requests.add(b'{"role":"assistant"}', [("c1", "told"), ("c2", "more")])
    said = json.loads(requests.body(offer_tools=True))
    assert said["messages"] == [
        {"role": "user", "content": "x"},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "c1", "content": "told"},
        {"role": "tool", "tool_call_id": "c2", "content": "more"},
    ]
    assert said["tools"] == json.loads(sent)["tools"]
    last = jsontext.fields(requests.body(offer_tools=False))
    assert (last.get("tools"), len(jsontext.items(last["messages"]))) == (own, 4)
    assert jsontext.fields(requests.request_without_tools()) == asked


@pytest.mark.parametrize(
    ("status", "error", "refused"),
    [
        (400, "registry.ollama.ai/library/gemma does not support tools", True),
        (400, '"auto" tool choice requires --enable-auto-tool-choice', True),
        (500, "tools param requires --jinja flag", True),
        (404, "No endpoints found that support tool use.", True),
        (400, "Function calling is not enabled for this model", True),
        (400, "Invalid value: 'tool_choice'", True),
        (400, "max_tokens is too large", False),
        (401, "no tools for this key", False),
        (429, "too many tool calls", False),
        (503, "tools are overloaded", False),
    ],
)
def test_errors_that_are_about_tools_are_known(status: int, error: str, refused: bool) -> None:
    body = json.dumps({"error": {"message": error}}).encode()
    assert refuses_tools(status, body) is refused
