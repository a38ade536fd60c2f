"""Node.js with what tests need of npm, which npm installs into tests/node/node_modules, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import NoReturn

import pytest

from tests.support.program import ROOT

FOLDER = ROOT / "tests" / "node"
INSTALL_SECONDS = 100
OLDEST = 20


def missing(what: str) -> NoReturn:
    """Skip with the reason; fail where nothing may be skipped."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def surroundings() -> dict[str, str]:
    cache = {"npm_config_cache": str(ROOT / ".venv" / "cache" / "npm")}
    return {**cache, **os.environ, "npm_config_update_notifier": "false"}


def installed() -> bool:
    """Is what the lock file says there?"""
    lock = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    wanted = {name: each["version"] for name, each in lock["packages"].items() if name}
    return all(_version(name) == version for name, version in wanted.items())


def _version(package: str) -> str | None:
    """What is installed of a package, None if it is not."""
    there = FOLDER / package / "package.json"
    if not there.exists():
        return None
    version: str = json.loads(there.read_text(encoding="utf-8"))["version"]
    return version


def node_with_packages() -> str:
    """The program, with the packages in FOLDER.  Skips where it cannot be; fails in CI."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        missing("no packages of Node.js: node and npm are not both on PATH")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    if int(said.stdout.strip().removeprefix("v").partition(".")[0]) < OLDEST:
        missing(f"no packages of Node.js: they need Node {OLDEST}, this is {said.stdout.strip()}")
    if not installed():
        install(npm)
    return program


def install(npm: str) -> None:
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        subprocess.run(
            command,
            cwd=FOLDER,
            env=surroundings(),
            capture_output=True,
            check=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        missing(f"no packages of Node.js: npm took longer than {INSTALL_SECONDS} s")
    except subprocess.CalledProcessError as error:
        missing(f"no packages of Node.js: npm failed: {error.stderr.decode()[-300:]}")
