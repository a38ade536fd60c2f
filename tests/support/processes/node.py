"""Node.js with what tests need of npm, which npm installs beside their package-lock.json, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.processes.authorities import with_the_systems
from tests.support.processes.locking import alone
from tests.support.processes.program import ROOT

FOLDER = ROOT / "tests" / "node"
CLIENTS = ROOT / "tests" / "clients" / "node"
INSTALL_SECONDS = 200
OLDEST = 20


def missing(what: str) -> NoReturn:
    """Skip with the reason; fail where nothing may be skipped."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def surroundings() -> dict[str, str]:
    cache = {"npm_config_cache": str(ROOT / ".venv" / "cache" / "npm")}
    return {**cache, **with_the_systems(), "npm_config_update_notifier": "false"}


def installed(folder: Path = FOLDER) -> bool:
    """Is what the lock file says there?"""
    lock = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))
    packages = lock["packages"].items()
    wanted = {name: each["version"] for name, each in packages if name and not _left_out(each)}
    return all(_version(folder / name) == version for name, version in wanted.items())


def _left_out(package: dict[str, Any]) -> bool:
    """Only for other systems than this one, or for those who want more."""
    return bool(package.get("optional") or package.get("peer"))


def _version(package: Path) -> str | None:
    """What is installed of a package, None if it is not."""
    there = package / "package.json"
    if not there.exists():
        return None
    version: str = json.loads(there.read_text(encoding="utf-8"))["version"]
    return version


def node_with_packages(folder: Path = FOLDER) -> str:
    """The program, with the packages in the folder.  Skips where it cannot be; fails in CI."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        missing("no packages of Node.js: node and npm are not both on PATH")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    if int(said.stdout.strip().removeprefix("v").partition(".")[0]) < OLDEST:
        missing(f"no packages of Node.js: they need Node {OLDEST}, this is {said.stdout.strip()}")
    with alone(f"node-{folder.parent.name}"):
        if not installed(folder):
            install(npm, folder)
    return program


def install(npm: str, folder: Path = FOLDER) -> None:
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        subprocess.run(
            command,
            cwd=folder,
            env=surroundings(),
            capture_output=True,
            check=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        missing(f"no packages of Node.js: npm took longer than {INSTALL_SECONDS} s")
    except subprocess.CalledProcessError as error:
        missing(f"no packages of Node.js: npm failed: {error.stderr.decode()[-300:]}")
