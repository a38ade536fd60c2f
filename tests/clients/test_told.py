"""docs/clients.md tells of every client that is tested, with the version and the words of the test.

Nothing is installed for this: it reads.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.pages import code, tables
from tests.support.processes import agents
from tests.support.processes.applications import PROGRAMS
from tests.support.processes.catalogue import CLIENTS
from tests.support.processes.environments import NAMES, REQUIREMENTS
from tests.support.processes.manners import manners
from tests.support.processes.node import CLIENTS as NODE

ROWS = [row for head, *rows in tables("clients.md") if head[-1] == "tested" for row in rows]
SOURCES = {
    path.name: path.read_text("utf-8")
    for path in (*PROGRAMS.glob("*.py"), *NODE.glob("*.mjs"), Path(agents.__file__))
}


def pins() -> dict[str, set[str]]:
    """What the environments ask for, by name, extras aside."""
    found: dict[str, set[str]] = {}
    for name in NAMES:
        text = (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8")
        for package, version in re.findall(r"^([\w-]+)(?:\[\w+\])?==(\S+)", text, re.MULTILINE):
            found.setdefault(package, set()).add(version)
    packages = json.loads((NODE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    for package, version in packages.items():
        found.setdefault(package, set()).add(version)
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_version_is_the_one_that_is_installed(row: list[str]) -> None:
    assert row[-1] in pins()[code(row[0])[0]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_words_are_those_of_a_program_that_is_run(row: list[str]) -> None:
    named = " ".join(code(row[1]))
    told = set(re.findall(r"[\w.]+(?=\()|\w+(?==)|\w+(?=:\s)", named)) - {"headers"}
    assert told
    assert any(all(word in source for word in told) for source in SOURCES.values()), told


def test_what_each_does_is_what_the_catalogue_says() -> None:
    assert all("say" in client.does for client in CLIENTS)
    (rows,) = [rows for head, *rows in tables("clients.md") if head[-1] == "errors"]
    assert rows == manners()


def test_every_agent_has_its_row() -> None:
    assert {agent.name for agent in agents.AGENTS} <= {code(row[0])[0] for row in ROWS}


def test_every_client_of_the_catalogue_has_its_program() -> None:
    names = [client.name for client in CLIENTS]
    assert len(names) == len(set(names))
    programs = {f"with_{name.replace('-', '_')}.py" for name in names}
    programs |= {f"with-{name}.mjs" for name in names}
    assert {name for name in SOURCES if name.startswith("with")} <= programs


@pytest.mark.parametrize("name", NAMES)
def test_every_package_of_an_environment_is_pinned(name: str) -> None:
    wanted = (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").lower()
    locked = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").lower()
    pinned = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", locked, re.MULTILINE))
    assert len(pinned) == len({line.split("==")[0] for line in locked.splitlines()})
    for package, version in re.findall(r"^([\w-]+)(?:\[\w+\])?==(\S+)", wanted, re.MULTILINE):
        assert pinned[package] == version
