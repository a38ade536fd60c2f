"""How deeply a text is nested, in pieces of any size."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.portable.depth import DEEPEST, Depth

JSON = st.recursive(
    st.text('[]{}"\\ a', max_size=6) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=3)
    ),
    max_leaves=12,
)


def in_pieces(text: bytes, size: int) -> bool:
    depth = Depth()
    return all(depth.feed(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_as_deep_as_may_be_and_one_level_more(size: int) -> None:
    assert in_pieces(b"[" * DEEPEST + b"]" * DEEPEST, size)
    assert not in_pieces(b'{"a":' * (DEEPEST + 1), size)
    assert in_pieces(b"[[]," * 100 + b"]" * 100 + b"[]" * 10 * DEEPEST, size)


@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_brackets_in_strings_do_not_count(size: int) -> None:
    text = json.dumps({'"[{\\': ["[" * 2 * DEEPEST, "\\", '\\"' + "{" * 2 * DEEPEST, '"']}).encode()
    assert in_pieces(text, size)
    assert not in_pieces(text + b"[" * (DEEPEST + 1), size)


@given(value=JSON, size=st.integers(1, 9))
def test_what_follows_a_whole_text_begins_at_the_top(value: object, size: int) -> None:
    text = json.dumps(value).encode()
    assert in_pieces(text + b"[" * DEEPEST, size)
    assert not in_pieces(text + b"[" * (DEEPEST + 1), size)
