"""A list that comes in pieces of any size, cut into its items."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.portable.source import MAX_DEPTH, ListSplitter

INNER = st.recursive(
    st.text('[]{},"\\ a', max_size=6) | st.none() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('[{"\\'), inner, max_size=3)
    ),
    max_leaves=12,
)
ITEM = st.lists(INNER, max_size=3) | st.dictionaries(st.text('a"\\}'), INNER, max_size=3)


def items(text: bytes, size: int, most: int = 10**6) -> list[bytes]:
    listed = ListSplitter(most)
    found = [item for at in range(0, len(text), size) for item in listed.feed(text[at : at + size])]
    listed.finish()
    return found


@given(st.lists(ITEM, max_size=4), st.integers(1, 40), st.sampled_from([None, 1]))
def test_a_list_falls_into_its_items_however_it_is_cut(
    values: list[object], size: int, indent: int | None
) -> None:
    text = b" \n" + json.dumps(values, indent=indent).encode() + b"\n "
    assert [json.loads(item) for item in items(text, size)] == values


@given(st.dictionaries(st.text('a"\\}'), INNER, max_size=3), st.integers(1, 40))
def test_an_object_is_the_one_item(value: dict[str, object], size: int) -> None:
    (item,) = items(json.dumps(value).encode() + b" ", size)
    assert json.loads(item) == value


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize(
    "text",
    [b"", b"x", b"[1]", b'["{}"]', b"[{},]", b"[{} {}]", b"[,{}]", b"[{}]]", b"[{}][", b"{},"]
    + [b"[{}", b"[[]", b'[{"a": "}', b"{}{}", b'"[{}]"', b"[{}]x"],
)
def test_what_is_no_list_of_objects_is_refused(text: bytes, size: int) -> None:
    with pytest.raises(ValueError):
        items(text, size)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_an_item_may_be_so_large_and_so_deep(size: int) -> None:
    assert items(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, size)
    with pytest.raises(ValueError, match="too deep"):
        items(b"[" * (MAX_DEPTH + 1), size)
    assert items(b'[{"a":"' + b"x" * 93 + b'"}]', size, most=101)
    with pytest.raises(ValueError, match="more than 100 bytes of item 1"):
        items(b'[{"a":"' + b"x" * 93 + b'"}]', size, most=100)
