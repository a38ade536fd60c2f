"""docs/recall.md says what is true: its settings, and the commands that it names."""

from __future__ import annotations

import re
from pathlib import Path

from proxy.settings import Settings, effective

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "recall.md").read_text(encoding="utf-8")


def test_every_setting_of_recall_is_there_with_its_default() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \|", TEXT, re.MULTILINE)
    told = {f"memory.recall.{name}": re.findall(r"[\w.]+", default) for name, default in rows}
    known = {
        name: re.findall(r"[\w.]+", default)
        for name, default in effective(Settings())
        if name.startswith("memory.recall.")
    }
    assert told == known


def test_the_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    assert all((ROOT / "docs" / link).exists() for link in links)


def test_the_commands_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for verb in re.findall(r"`?make (\w+)", TEXT):
        assert re.search(rf"^{verb}:", makefile, re.MULTILINE)
