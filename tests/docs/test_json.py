"""The blocks in JSON are JSON, and objects of the memory API are as its document says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from proxy.memory_api.openapi.document import DocumentOptions, document
from proxy.memory_api.operations import OPERATIONS
from tests.support.pages import Block, all_blocks

Json = Mapping[str, Any]

COMPONENTS: Json = document(DocumentOptions(), OPERATIONS)["components"]


def values(block: Block) -> list[Any]:
    """What a block holds: one value, or one a line."""
    lines = block.text.splitlines() if "lines" in block.marks else [block.text]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("block", all_blocks("json"), ids=lambda block: block.place)
def test_a_block_in_json_is_json(block: Block) -> None:
    assert values(block)


def shown() -> Iterator[tuple[str, Json]]:
    """The name of each object of the API that a page shows, and the object."""
    for block in all_blocks("json"):
        for value in values(block):
            if "object" in value:
                yield named(value["object"]), value
            elif "error" in value:
                yield "Error", value


def named(kind: str) -> str:
    """The schema of the objects that call themselves so."""
    (found,) = (
        name
        for name, schema in COMPONENTS["schemas"].items()
        if kind in schema.get("properties", {}).get("object", {}).get("enum", ())
    )
    return str(found)


@pytest.mark.parametrize(("name", "value"), list(shown()), ids=lambda part: str(part)[:20])
def test_an_object_of_the_api_is_as_its_document_says(name: str, value: Json) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": COMPONENTS}
    errors = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
    assert not errors


def test_pages_show_objects_of_the_api() -> None:
    assert {name for name, _ in shown()} == {"Error", "Imported"}
