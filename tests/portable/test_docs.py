"""The page about the format says every field of every line, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from proxy.memory.items import Item
from proxy.memory.model import Exchange, Summary
from proxy.portable import format

PAGE = Path(__file__).parents[2] / "docs" / "export-import.md"
INSIDE: dict[type[format.ExportLine], tuple[str, type[msgspec.Struct]]] = {
    format.ExchangeLine: ("exchange", Exchange),
    format.SummaryLine: ("summary", Summary),
    format.ItemLine: ("item", Item),
}


def told() -> dict[str, list[str]]:
    """The fields in the tables of each kind of line."""
    _, *parts = PAGE.read_text(encoding="utf-8").split("\n### `")
    return {part.partition("`")[0]: re.findall(r"^\| `([\w.]+)` \|", part, re.M) for part in parts}


def fields(line: type[format.ExportLine]) -> list[str]:
    names = list(line.__struct_encode_fields__)
    if line in INSIDE:
        name, inner = INSIDE[line]
        names += [f"{name}.{field}" for field in inner.__struct_encode_fields__]
    return names


def test_every_kind_is_described() -> None:
    assert list(told()) == [format.kind_of(line) for line in format.LINES]


@pytest.mark.parametrize("line", format.LINES, ids=format.kind_of)
def test_every_field_is_described(line: type[format.ExportLine]) -> None:
    assert sorted(told()[format.kind_of(line)]) == sorted(fields(line))


def test_the_version_is_the_one_that_is_written() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"| `version` | {format.VERSION} |" in text
    assert f"| `minor` | {format.MINOR} |" in text
