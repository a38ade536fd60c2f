"""The map for contributors shows the tree that is there."""

from __future__ import annotations

import re

import pytest

from tests.support.processes.program import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAP = TEXT.partition("## The map")[2]
FOLDERS = ("proxy", ".", "proxy/memory_api", "proxy/recall/lexicon", "proxy/stores")
NAMED = sorted(set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|toml|md)|(?:[\w-]+/)+)`", MAP)))
DRAWN = re.findall(
    r"^  (\S+)(?: (\S+))?(?: (\S+))?  ", MAP.partition("```")[2].partition("```")[0], re.M
)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_on_the_road_is_there(name: str) -> None:
    assert any((ROOT / folder / name).exists() for folder in FOLDERS), name


@pytest.mark.parametrize("name", [name for line in DRAWN for name in line if name])
def test_what_the_map_draws_is_there(name: str) -> None:
    assert (ROOT / "proxy" / name).exists()


def test_every_folder_of_the_program_is_on_the_map() -> None:
    folders = {path.name for path in (ROOT / "proxy").iterdir() if (path / "__init__.py").exists()}
    assert {name.strip("/") for line in DRAWN for name in line} >= folders
