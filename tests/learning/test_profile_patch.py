"""Changes of a profile's document."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.learning.profile.document import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_OPERATIONS,
    Document,
    PatchError,
    apply_patch,
    diff_patch,
    equal_json,
    join_pointer,
    patch_of_merge,
    split_pointer,
)

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({}, [], {}),
        ({}, [{"op": "add", "path": "/name", "value": "Kai"}], {"name": "Kai"}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        (
            {"a": 1},
            [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}],
            {},
        ),
        ({"x/y": 1}, [{"op": "replace", "path": "/x~1y", "value": 2}], {"x/y": 2}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ],
)
def test_a_patch_is_applied_and_the_document_before_stays(
    document: Document, patch: list[Any], expected: Document
) -> None:
    before = repr(document)
    assert apply_patch(document, patch) == expected
    assert repr(document) == before


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        (["remove"], None),
        ([{}], None),
        ([{"op": "add"}], None),
        ([{"op": "add", "path": "/a"}], "/a"),
        ([{"op": "add", "path": 7, "value": 1}], None),
        ([{"op": "add", "path": "a", "value": 1}], "a"),
        ([{"op": "add", "path": "/x/y", "value": 1}], "/x/y"),
        ([{"op": "boo", "path": "/a", "value": 1}], "/a"),
        ([{"op": "remove", "path": "/x"}], "/x"),
        ([{"op": "replace", "path": "/x", "value": 1}], "/x"),
        ([{"op": "move", "from": "/x", "path": "/y"}], "/y"),
        ([{"op": "move", "path": "/y"}], "/y"),
        ([{"op": "test", "path": "/a", "value": 2}], "/a"),
        ([{"op": "test", "path": "/x", "value": None}], "/x"),
        ([{"op": "remove", "path": "/list/7"}], "/list/7"),
        ([{"op": "remove", "path": "/list/-"}], "/list/-"),
        ([{"op": "remove", "path": "/list/-1"}], "/list/-1"),
        ([{"op": "add", "path": "/list/9", "value": 1}], "/list/9"),
        ([{"op": "replace", "path": "", "value": [1]}], ""),
        ([{"op": "replace", "path": "", "value": None}], ""),
        ([{"op": "remove", "path": ""}], ""),
        ([{"op": "add", "path": "/b", "value": {"c": "\ud83d"}}], "/b"),
        ([{"op": "add", "path": "/b", "value": 1, "why": "\ud83d"}], "/b"),
    ],
)
def test_what_cannot_be_applied_is_told_with_its_place(patch: list[Any], path: str | None) -> None:
    with pytest.raises(PatchError) as told:
        apply_patch({"a": 1, "list": [1]}, patch)
    assert told.value.path == path
    assert "operation 0" in str(told.value)


def test_a_patch_is_applied_as_a_whole_or_not_at_all() -> None:
    document = {"a": 1}
    with pytest.raises(PatchError, match="operation 1"):
        apply_patch(document, [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}])
    assert document == {"a": 1}


def test_copies_of_copies_do_not_grow_without_bounds() -> None:
    growing = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(MAX_OPERATIONS)]
    with pytest.raises(PatchError):
        apply_patch({"a": "x" * 100}, growing)


def test_documents_are_bounded_in_every_way() -> None:
    many = [{"op": "add", "path": "/a", "value": 1}] * (MAX_OPERATIONS + 1)
    large = [{"op": "add", "path": "/a", "value": "x" * MAX_BYTES}]
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    for patch, told in ((many, "more than"), (large, "bytes"), ([_adding(deep)], "nested")):
        with pytest.raises(PatchError, match=told):
            apply_patch({}, patch)
    assert apply_patch({}, [_adding(deep[0])]) == {"a": deep[0]}


def test_a_value_nested_a_thousand_times_is_refused_like_any_other() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(PatchError, match="nested"):
        apply_patch({}, [_adding(deep)])


def _adding(value: object) -> dict[str, object]:
    return {"op": "add", "path": "/a", "value": value}


@pytest.mark.parametrize(
    ("document", "merge", "expected"),
    [
        # The table of RFC 7396, appendix A, of those whose result is an object.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": True}, {"a": 1}, {"a": 1}),
        ({"x/y~z": 1}, {"x/y~z": 2}, {"x/y~z": 2}),
    ],
)
def test_a_merge_patch_does_what_its_rfc_says(
    document: Document, merge: Document, expected: Document
) -> None:
    assert equal_json(apply_patch(document, patch_of_merge(document, merge)), expected)


def test_a_merge_that_changes_nothing_is_no_operation() -> None:
    assert patch_of_merge({"a": {"b": [1]}}, {"a": {"b": [1]}, "c": None}) == []


@given(DOCUMENTS, DOCUMENTS)
def test_differences_make_one_document_into_another(one: Document, other: Document) -> None:
    assert equal_json(apply_patch(one, diff_patch(one, other)), other)


@given(st.lists(st.text(max_size=5), max_size=4))
def test_pointers_keep_every_name(names: list[str]) -> None:
    assert split_pointer(join_pointer(names)) == names
