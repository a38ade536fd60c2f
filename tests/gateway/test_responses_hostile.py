"""Bodies that no client sends by accident: the upstream judges them, and memory stays whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rig import Rig
from tests.support.talk.responding import ItemTalk
from tests.support.upstream.answers import json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

WRONG: list[Any] = [None, True, 7, 1.5, "", "x", [], {}, [[]], {"a": {}}, [None], ["x"], [{}], [7]]
IN_ITEMS: list[Any] = [None, 7, "", [], {"a": {}}, [{}]]

FIELDS = [
    *("input", "instructions", "model", "store", "include", "stream", "previous_response_id"),
    *("conversation", "background", "client_metadata", "reasoning", "max_output_tokens"),
]
ITEM_FIELDS = [
    *("type", "role", "id", "call_id", "content", "output", "name", "arguments", "input"),
    *("summary", "encrypted_content", "approval_request_id", "status"),
]
KINDS = [
    *("message", "function_call", "function_call_output", "custom_tool_call", "reasoning"),
    *("item_reference", "shell_call", "shell_call_output", "mcp_approval_response"),
    *("mcp_approval_request", "tool_search_output", "image_generation_call", "x"),
]


def bodies() -> list[bytes]:
    made: list[Any] = [{"model": "m", "input": "u2", name: w} for name in FIELDS for w in WRONG]
    whole = {
        "id": "i",
        "role": "user",
        "call_id": "c",
        "content": [{"type": "input_text", "text": "t"}],
        "output": "o",
    }
    made += [
        {
            "model": "m",
            "input": [{**whole, "type": kind, name: w}, {"role": "user", "content": "x"}],
        }
        for kind in KINDS
        for name in ITEM_FIELDS
        for w in IN_ITEMS
    ]
    return [json.dumps(each).encode() for each in made] + RAW


RAW = [
    b"",
    b"null",
    b"[]",
    b'{"input": [',
    b'{"input": "\xff"}',
    b'{"input": [' + b"[" * 10_000 + b"]" * 10_000 + b"]}",
    b'{"input": [{"role": "user", "content": ' + b"[" * 5_000 + b"]" * 5_000 + b"}]}",
    b'{"input": [{"type": "x", "y": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}]}",
    b'{"input": [' + b'{"role":"user","content":"x"},' * 13_000 + b'{"role":"user"}]}',
    b'{"input": [{"role": "user", "content": "\\ud83d"}]}',
    b'{"input": "' + b"0" * 3_000_000 + b'"}',
    b'{"input": [{"role": "user", "content": 1e999999}]}',
    b'{"input": "a", "input": "b"}',
]


async def test_none_of_it_is_an_error_of_ours_or_costs_what_was_said(one: Rig) -> None:
    one.up.strict = False
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    one.up.always(json_answer({"object": "response", "status": "failed", "error": {}}))
    wrong = []
    for body in bodies():
        one.up.requests.clear()
        answered = await talk.post(body, x_memory_mode="read")
        if answered.status_code != 200 or len(one.up.requests) != 1:
            wrong.append((answered.status_code, body[:200]))
    assert not wrong
    assert await talk.log() == "u1 a1"


async def test_nor_where_it_is_recorded(one: Rig) -> None:
    one.up.strict = False
    wrong = []
    for body in bodies()[::25]:
        talk = ItemTalk.of(one)
        await talk.say("u1", "a1")
        answered = await talk.post(body)
        after = await talk.post({"model": "gpt-5", "input": "u9"})
        if max(answered.status_code, after.status_code) >= 500 or "a1" not in talk.sent:
            wrong.append((answered.status_code, after.status_code, body[:200]))
    assert not wrong
