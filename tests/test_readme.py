"""README.md is short and says what is true: what is on, and what its pages are.

Its code blocks, tables of settings and links are checked with those of docs/ in tests/docs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.settings import Settings, effective
from tests.support.pages import read, table
from tests.support.processes.program import ROOT

MAX_LINE = 130
"""Lines; what is longer belongs into docs/."""

SWITCHES = {
    "Recall": ("memory.recall.enabled",),
    "Summaries": ("memory.summary.enabled",),
    "Long-term memory": tuple(
        f"memory.{part}.enabled" for part in ("facts", "profile", "episodes", "instructions")
    ),
}
"""The settings that switch a row of the table on."""

FEATURES = {row[0]: row for row in table("README.md", "", "")}


def test_it_stays_short() -> None:
    assert len(read("README.md").splitlines()) <= MAX_LINE


@pytest.mark.parametrize("feature", FEATURES)
def test_what_is_said_to_be_on_is_on(feature: str) -> None:
    known = dict(effective(Settings()))
    told = FEATURES[feature][2]
    values = {known[name] for name in SWITCHES.get(feature, ())}
    assert values <= {"true" if told == "on" else "false"}
    assert told in ("on", "off", "")


def test_every_page_that_people_start_from_is_linked() -> None:
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", read("README.md")))
    there = {path.name for path in (ROOT / "docs").glob("*.md")}
    parts_of_the_site = {"index.md", "api-reference.md", "bench.md", "changelog.md"}
    assert linked == there - parts_of_the_site


def test_the_window_is_a_budget_of_tokens_and_the_upstream_is_openai() -> None:
    settings = Settings()
    assert settings.memory.window == "token_window"
    assert settings.upstream.url in read("README.md")
    assert settings.store.url == "sqlite:///data/memory.db"
    assert f"http://{settings.server.host}:{settings.server.port}" in read("README.md")


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda p: p.name)
def test_a_picture_fetches_nothing_from_elsewhere(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert not re.search(r"@import|url\(\s*[\"']?(?!#)|href=[\"'](?!#)|\bsrc=", text)


def test_the_chinese_one_shows_the_same_code_and_leads_to_the_same_pages() -> None:
    english, chinese = (ROOT / name for name in ("README.md", "README.zh.md"))
    for part in (r"^```.*?^```$", r"\]\(([^)]+)\)"):
        found = [
            re.findall(part, path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
            for path in (english, chinese)
        ]
        other = {"README.md", "README.zh.md"}
        assert set(found[0]) - other == set(found[1]) - other
