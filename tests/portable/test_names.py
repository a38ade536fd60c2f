"""Each format is in the table, and is offered wherever something can be imported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from proxy.cli import app
from proxy.portable.detection import READERS, detect
from proxy.portable.names import FORMATS, Format
from tests.support.talk.foreign import sample

ROOT = Path(__file__).parents[2]


def test_the_table_has_every_format() -> None:
    assert set(READERS) == set(FORMATS)


def test_the_console_offers_every_format() -> None:
    text = (ROOT / "proxy/console/portable/importing.js").read_text(encoding="utf-8")
    listed = re.search(r"const FORMATS = \[([^\]]*)\]", text)
    assert listed
    assert re.findall(r'"([\w-]+)"', listed[1]) == ["auto", *FORMATS]


def test_the_command_line_names_every_format() -> None:
    told = CliRunner().invoke(app, ["sessions", "import", "--help"], env={"COLUMNS": "300"})
    assert all(name in told.output for name in FORMATS)


def test_the_page_describes_every_format() -> None:
    page = (ROOT / "docs/export-import.md").read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("claude.json", "claude"),
        ("claude_code.jsonl", "claude_code"),
        ("codex.jsonl", "codex"),
        ("codex_before.jsonl", "codex"),
        ("open_webui.json", "open_webui"),
        ("librechat_tree.json", "librechat"),
        ("librechat_flat.json", "librechat"),
        ("mem0.json", "mem0"),
        ("langmem.json", "langmem"),
    ],
)
def test_a_file_of_each_program_is_recognised(name: str, format: Format) -> None:
    content = sample(name)
    assert detect(content) == format
    assert detect(b"\xef\xbb\xbf\n " + content) == format
    assert detect(content[:300]) == format  # by what can be seen of it


@pytest.mark.parametrize("name", ["claude.json", "open_webui.json", "mem0.json", "langmem.json"])
def test_one_alone_and_a_list_are_the_same_format(name: str) -> None:
    value = json.loads(sample(name))
    items = value["results"] if isinstance(value, dict) else value
    assert detect(json.dumps(items).encode()) == detect(sample(name))
    wrapped = {"mem0": {"records": items}, "langmem": {"items": items}}
    format = detect(sample(name))
    alone = wrapped.get(str(format), items[0])
    assert detect(json.dumps(alone, indent=2).encode()) == format
