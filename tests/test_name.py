"""Another ``proxy`` on the path: the command goes on, or says what is in its way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proxy import __version__
from tests.support.processes.program import ROOT, surroundings
from tests.support.waiting import PATIENCE

SAID = f"memory-proxy {__version__}\n"
# What the console script of an installed package does.
SCRIPT = """
import sys
from memory_proxy import main
if __name__ == "__main__":
    sys.argv[0] = "memory-proxy"
    main()
"""
OTHER = '"""Somebody\'s own."""\nraise SystemExit("the other one was loaded")\n'


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with a proxy.py of somebody's own."""
    (tmp_path / "proxy.py").write_text(OTHER)
    return tmp_path


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with ours in it, and the script of its command."""
    site = tmp_path_factory.mktemp("site")
    (site / "proxy").symlink_to(ROOT / "proxy")
    shutil.copy(ROOT / "memory_proxy.py", site)
    return site


def python(
    *arguments: str, folder: Path, path: list[Path], **more: str
) -> subprocess.CompletedProcess[str]:
    environ = surroundings(PYTHONPATH=":".join(map(str, path)), **more)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_command_does_not_look_where_it_is_started(beside: Path, installed: Path) -> None:
    script = installed / "memory-proxy"
    script.write_text(SCRIPT)
    ran = python(str(script), "--version", folder=beside, path=[installed])
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, SAID, "")


def test_python_with_a_safe_path_does_not_either(beside: Path, installed: Path) -> None:
    for module in ("proxy", "memory_proxy"):
        ran = python("-P", "-m", module, "--version", folder=beside, path=[installed])
        assert (ran.returncode, ran.stdout) == (0, SAID), ran.stderr


def test_several_workers_are_started_beside_it(beside: Path, installed: Path) -> None:
    script = installed / "memory-proxy"
    script.write_text(SCRIPT)
    # A worker that found the other one would end before it says that it started.
    serve = ("serve", "--upstream", "demo", "--port", "0", "--workers", "2", "--store", "memory://")
    with subprocess.Popen(
        [sys.executable, str(script), *serve],
        cwd=beside,
        env=surroundings(PYTHONPATH=str(installed)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        seen = []
        for text in process.stdout:
            seen.append(text)
            if "startup complete" in text or "the other one" in text:
                break
        process.terminate()
        try:
            process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert "startup complete" in seen[-1], seen


@pytest.mark.parametrize("how", ["where it is started", "on PYTHONPATH"])
def test_what_is_in_the_way_is_named_with_what_to_do(
    how: str, beside: Path, installed: Path
) -> None:
    path = [installed] if how == "where it is started" else [beside, installed]
    arguments = ["-m", "memory_proxy"] if len(path) == 1 else ["-c", SCRIPT]
    folder = beside if len(path) == 1 else installed.parent
    ran = python(*arguments, "--version", folder=folder, path=path)
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"memory-proxy: {beside / 'proxy.py'} is what Python finds")
    assert "PYTHONPATH" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_files_of_another_package_over_ours_are_told(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "proxy").mkdir(parents=True)
    (site / "proxy" / "__init__.py").write_text('"""proxy.py of the index."""\n')
    shutil.copy(ROOT / "memory_proxy.py", site)
    ran = python("-P", "-m", "memory_proxy", folder=tmp_path, path=[site])
    assert ran.returncode == 1
    assert "another package has put its files over ours" in ran.stderr
    assert "environment of its own" in ran.stderr
