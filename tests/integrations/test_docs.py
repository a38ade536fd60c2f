"""docs/langgraph.md says what is true: its examples are run."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest

from proxy.memory_api.items.params import MAX_LABELS, MAX_VALUE_BYTES
from proxy.memory_api.items.search import MAX_RANKED, MAX_READ_BYTES, MAX_SCANNED
from tests.integrations.conftest import Served
from tests.support.processes.program import ROOT

TEXT = (ROOT / "docs" / "langgraph.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080"


def blocks() -> list[tuple[str, str]]:
    """Each example in Python, and the line that it is said to print."""
    found = re.finditer(
        r"^```python\n(.*?)^```\n\nIt prints `(.*?)`", TEXT, re.MULTILINE | re.DOTALL
    )
    return [(match[1], match[2]) for match in found]


def test_every_example_in_python_says_what_it_prints() -> None:
    assert len(blocks()) == TEXT.count("```python") == 2


@pytest.mark.parametrize(("example", "printed"), blocks(), ids=["langgraph", "langchain"])
def test_an_example_prints_what_it_is_said_to(
    served: Served, key: str, example: str, printed: str
) -> None:
    assert example.count(ADDRESS) == example.count("sk-...") == 1
    code = example.replace(ADDRESS, served.url).replace("sk-...", key)
    names: dict[str, Any] = {}
    with redirect_stdout(StringIO()) as out:
        exec(compile(code, "langgraph.md", "exec", dont_inherit=True), names)
    assert out.getvalue() == f"{printed}\n"
    for name in {"store", "connections"} & names.keys():
        names[name].close()


def test_the_extras_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.findall(r"pip install '\.\[(\w+)\]'", TEXT)
    assert extras == ["langgraph", "langchain"]
    assert all(f"\n{extra} = [\n" in project for extra in extras)


def test_the_limits_are_those_of_the_api() -> None:
    assert f"{MAX_VALUE_BYTES // 1024} KiB at most" in TEXT
    assert f"{MAX_LABELS} labels at most" in TEXT
    assert f"first {MAX_RANKED:,} items" in TEXT
    assert f"{MAX_READ_BYTES // 10**6} MB of values" in TEXT
    assert f"first {MAX_SCANNED:,} of the prefix" in TEXT
