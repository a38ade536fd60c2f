"""Usage of several requests as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proxy.chat.tools.usage import summed


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 3, "b": 0}, {"a": 4, "b": 2}, id="numbers"),
        pytest.param({"a": 0.5}, {"a": 1}, {"a": 1.5}, id="fractions"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 3}}, id="nested"),
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="one-side-only"),
        pytest.param({"a": {"b": 1}}, {"a": None}, {"a": {"b": 1}}, id="null-behind"),
        pytest.param({"a": None}, {"a": 2}, {"a": 2}, id="null-before"),
        pytest.param({"a": "x"}, {"a": "y"}, {"a": "y"}, id="text"),
        pytest.param({"a": True}, {"a": True}, {"a": True}, id="flags"),
    ],
)
def test_numbers_add_up_field_by_field(first: Any, second: Any, total: Any) -> None:
    found = summed(json.dumps(first).encode(), json.dumps(second).encode())
    assert json.loads(found or b"") == total


def test_nothing_adds_nothing() -> None:
    assert summed(None, None) is None
    assert summed(b'{"a": 1}', None) == b'{"a": 1}' == summed(None, b'{"a": 1}')
