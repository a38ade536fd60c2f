"""The JSON Schema of an operator's, and what it says of documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.learning.profile.document import Document, PatchError, Schema, Schemas, read_schema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0},
        "pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"pet": {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}}}},
}


def test_a_schema_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    assert read_schema(path) == PERSON
    assert Schemas([str(path), ""]).of(str(path)).described == PERSON


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot read"),
        ("{", "is not JSON"),
        ("[" * 5000, "is not JSON"),
        ("[]", "which is an object"),
        ('{"type": "boo"}', "is not a JSON Schema"),
        ('{"type": "object", "properties": []}', "is not a JSON Schema"),
        ('{"type": "array"}', "must describe an object"),
        ('{"properties": {"a": {"$ref": "#/$defs/b"}}}', "there is nothing at"),
        ('{"$ref": "https://example.com/person.json"}', "must stay in the file"),
    ],
)
def test_a_schema_that_is_none_is_told_in_a_sentence_with_its_file(
    tmp_path: Path, content: str | None, told: str
) -> None:
    path = tmp_path / "person.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=told) as problem:
        Schemas([str(path)])
    assert str(path) in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    ("before", "now", "path"),
    [
        ({"name": "Kai"}, {"name": 7}, "/name"),
        ({"name": "Kai"}, {"name": "Kai", "age": -1}, "/age"),
        ({"name": "Kai"}, {"name": "Kai", "shoe": 43}, ""),
        ({"name": "Kai"}, {}, ""),
        ({"name": "Kai"}, {"name": "Kai", "pets": [{}, {"kind": "axolotl"}]}, "/pets/1/kind"),
    ],
)
def test_a_new_fault_is_told_with_its_place(before: Document, now: Document, path: str) -> None:
    with pytest.raises(PatchError) as told:
        Schema(PERSON).check(before, now)
    assert told.value.path == path and told.value.problem


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {"name": "Kai", "pets": [{"kind": "cat"}]}),
        pytest.param({}, {"age": 34}, id="what-is-not-known-yet"),
        pytest.param({"shoe": 43}, {"shoe": 43, "age": 34}, id="the-schema-has-changed"),
    ],
)
def test_what_was_wrong_before_is_no_new_fault(before: Document, now: Document) -> None:
    Schema(PERSON).check(before, now)


def test_without_a_schema_everything_is_right() -> None:
    free = Schema()
    free.check({}, {"anything": [{"goes": None}]})
    assert free.text is None and Schemas().of("") is not None


def test_nothing_is_fetched_to_judge_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("something was fetched")

    monkeypatch.setattr("urllib.request.urlopen", never)
    remote = {"properties": {"a": {"$ref": "https://example.com/person.json"}}}
    with pytest.raises(Exception, match="Unresolvable"):
        Schema(remote).check({}, {"a": 1})
