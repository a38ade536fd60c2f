"""Calls that a request forced are an answer: what they are as text."""

from __future__ import annotations

import json

import pytest

from proxy.chat.tools.calltext import (
    calls_as_text,
    forces_calls,
    render_stored,
    tokens_without_calls,
)
from tests.support.talk.parsing import parse

CALL = {"id": "k", "type": "function", "function": {"name": "Person", "arguments": '{"a":1}'}}
FUNCTION = {"type": "function", "function": {"name": "Person"}}


@pytest.mark.parametrize(
    ("choice", "forced"),
    [
        (None, False),
        ("auto", False),
        ("none", False),
        ("required", True),
        ("any", True),
        (FUNCTION, True),
        ({"type": "custom", "custom": {"name": "f"}}, True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, True),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}, False),
        ({"type": "allowed_tools"}, False),
        ({}, False),
        ([], False),
        (7, False),
    ],
)
def test_a_request_forces_a_call_where_it_says_so(choice: object, forced: bool) -> None:
    assert forces_calls(choice) is forced
    request = parse(json.dumps({"messages": [], "tool_choice": choice}).encode())
    assert request is not None
    assert request.forces_calls is forced


@pytest.mark.parametrize(("said", "forced"), [("auto", False), ("none", False), ({}, True)])
def test_a_legacy_function_is_forced_by_its_name(said: object, forced: bool) -> None:
    assert forces_calls(None, said) is forced


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"tool_calls": [CALL]}, '{"a":1}'),
        ({"content": "Here:", "tool_calls": [CALL, CALL]}, 'Here:\n{"a":1}\n{"a":1}'),
        ({"function_call": {"name": "f", "arguments": "{}"}}, "{}"),
        ({"tool_calls": [{"id": "k", "type": "custom", "custom": {"input": "print(1)"}}]},
         "print(1)"),
        ({"tool_calls": [{"id": "k"}, 7, {"function": 7}]}, ""),
    ],
)  # fmt: skip
def test_calls_in_words_are_their_arguments(message: dict[str, object], text: str) -> None:
    raw = json.dumps({"role": "assistant", "content": None, **message}).encode()
    assert json.loads(calls_as_text(raw)) == {"role": "assistant", "content": text}


@pytest.mark.parametrize("raw", [b"[]", b"no JSON", b'{"a":' * 50_000])
def test_what_is_no_message_stays_as_it_is(raw: bytes) -> None:
    assert calls_as_text(raw) == raw


def test_words_beside_calls_are_what_is_sent_without_them() -> None:
    fields = {"role": "assistant", "content": [{"type": "text", "text": "Here:"}]}
    raw = json.dumps({**fields, "tool_calls": [CALL], "native": {"api": "x", "parts": []}}).encode()
    alone = render_stored(raw, "words")
    assert json.loads(alone) == {"role": "assistant", "content": "Here:"}
    assert tokens_without_calls("Here:", ("k",), len) == len(alone)
    assert tokens_without_calls(" ", ("k",), len) == tokens_without_calls("Here:", (), len) == 0
