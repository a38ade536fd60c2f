from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.chat.reply.used import used_in


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
    assert used_in(json.dumps(usage).encode()) == used


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
    assert all(type(count) is int and count >= 0 for count in used_in(usage))
