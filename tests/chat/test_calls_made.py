"""The calls of a message for people to read, in whatever shape somebody wrote them."""

from __future__ import annotations

import pytest

from proxy.chat.tools.display import displayed_calls

WEATHER = {"name": "weather", "arguments": '{"city": "Bergen"}'}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"tool_calls": [{"id": "c", "function": WEATHER}]}, [tuple(WEATHER.values())]),
        ({"tool_calls": [WEATHER]}, [tuple(WEATHER.values())]),
        ({"function_call": WEATHER}, [tuple(WEATHER.values())]),
        ({"tool_calls": [{"custom": {"name": "sh", "input": "ls"}}]}, [("sh", "ls")]),
        ({"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, [("f", '{"a":1}')]),
        ({"tool_calls": [{"function": {"name": "f", "arguments": "\ud800"}}]}, [("f", "\ufffd")]),
        ({"tool_calls": [{"function": {"name": None}}]}, [("?", "{}")]),
        ({"tool_calls": [None, 5, {"function": "str"}]}, [("?", "{}")] * 3),
        ({"tool_calls": "abc", "function_call": "abc"}, [("?", "{}")]),
        ({"tool_calls": {"a": 1}}, []),
        ({}, []),
        ("no object", []),
    ],
)
def test_calls_are_told_in_any_shape(message: object, told: list[tuple[str, str]]) -> None:
    assert list(displayed_calls(message)) == told
