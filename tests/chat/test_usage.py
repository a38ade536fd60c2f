"""What upstreams say they have counted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.usage import add_usages, read_usage


@pytest.mark.parametrize(
    ("usage", "used"),
    [
        pytest.param({"prompt_tokens": 9, "completion_tokens": 4}, (9, 4, 0, 0), id="openai"),
        pytest.param(
            {
                "prompt_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
            },
            (9, 0, 6, 2),
            id="openai-with-a-cache",
        ),
        pytest.param(
            {
                "input_tokens": 9,
                "output_tokens": 4,
                "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 1},
            },
            (9, 4, 5, 1),
            id="responses",
        ),
        pytest.param(
            {"input_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2},
            (9, 0, 3, 2),
            id="anthropic-which-counts-them-apart",
        ),
        pytest.param({"input_tokens": 9, "cache_read_input_tokens": 0}, (9, 0, 0, 0), id="none"),
        pytest.param(
            {"prompt_tokens": 9, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2},
            (9, 0, 3, 2),
            id="of-a-gateway",
        ),
        pytest.param(
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}, (9, 0, 8, 0), id="deepseek"
        ),
        pytest.param({"prompt_tokens": 9, "cached_tokens": 4}, (9, 0, 4, 0), id="moonshot"),
        pytest.param({"prompt_tokens": 9.0}, (9, 0, 0, 0), id="a-float"),
        pytest.param({"prompt_tokens": "9"}, (0, 0, 0, 0), id="a-text"),
        pytest.param({"prompt_tokens": None, "input_tokens": 9}, (9, 0, 0, 0), id="null"),
        pytest.param({"prompt_tokens": True}, (0, 0, 0, 0), id="a-truth"),
        pytest.param({"prompt_tokens": -9}, (0, 0, 0, 0), id="negative"),
        pytest.param({"prompt_tokens": 2**70}, (0, 0, 0, 0), id="beyond-all"),
        pytest.param({"prompt_tokens_details": [1]}, (0, 0, 0, 0), id="details-of-another-kind"),
        pytest.param({"prompt_tokens": 9, "x": "\ud83d"}, (9, 0, 0, 0), id="half-a-surrogate-pair"),
        pytest.param([1, 2], (0, 0, 0, 0), id="a-list"),
        pytest.param(None, (0, 0, 0, 0), id="nothing"),
    ],
)
def test_usage_is_read_as_far_as_it_can_be(usage: object, used: tuple[int, int, int, int]) -> None:
    assert read_usage(json.dumps(usage).encode()) == used


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["prompt_tokens", "output_tokens", "prompt_tokens_details", "x"]), inner
        )
    ),
)


@given(st.one_of(st.none(), st.binary(max_size=20), JSON.map(lambda x: json.dumps(x).encode())))
def test_no_usage_is_too_strange_to_count(usage: bytes | None) -> None:
    assert all(type(count) is int and count >= 0 for count in read_usage(usage))


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
    found = add_usages(json.dumps(first).encode(), json.dumps(second).encode())
    assert json.loads(found or b"") == total


def test_nothing_adds_nothing() -> None:
    assert add_usages(None, None) is None
    assert add_usages(b'{"a": 1}', None) == b'{"a": 1}' == add_usages(None, b'{"a": 1}')
