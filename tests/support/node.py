"""Node.js with the official SDK, which npm installs into tests/node/node_modules, once."""

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
    wanted = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))
    there = FOLDER / "node_modules" / "openai" / "package.json"
    if not there.exists():
        return False
    version: str = json.loads(there.read_text(encoding="utf-8"))["version"]
    return bool(version == wanted["packages"]["node_modules/openai"]["version"])


def node_with_sdk() -> str:
    """The program, with the SDK installed in FOLDER.  Skips where it cannot be; fails in CI."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        missing("no Node.js SDK: node and npm are not both on PATH")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
    if int(said.stdout.strip().removeprefix("v").partition(".")[0]) < OLDEST:
        missing(f"no Node.js SDK: it needs Node {OLDEST} or newer, this is {said.stdout.strip()}")
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
        missing(f"no Node.js SDK: npm took longer than {INSTALL_SECONDS} s")
    except subprocess.CalledProcessError as error:
        missing(f"no Node.js SDK: npm failed: {error.stderr.decode()[-300:]}")
