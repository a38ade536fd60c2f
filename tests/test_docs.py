"""Pages under docs/ say what is true: their settings, and where their links lead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.settings import Settings, effective

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
SECTIONS = {"summaries.md": "memory.summary."}
"""Pages with a table of settings, and the section that it is about."""

LONG = "prompt"
"""Too long for a table; the page says where it is."""


def rows(page: str) -> dict[str, str]:
    """The settings in a page's tables, and what stands for their defaults."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE))


@pytest.mark.parametrize(("page", "section"), SECTIONS.items())
def test_every_setting_is_there_with_its_default(page: str, section: str) -> None:
    told = {section + name: default.strip("`") for name, default in rows(page).items()}
    known = {
        name: value or "not set"
        for name, value in effective(Settings())
        if name.startswith(section)
    }
    del known[f"{section}{LONG}"], told[f"{section}{LONG}"]
    told.pop(f"{section}parameters")  # an empty table has no rows among the effective settings
    assert told == known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert all("://" in link or (page.parent / link).exists() for link in links)
