"""Environments with other people's client libraries, which uv installs into .venv/clients, once.

`python -m tests.support.processes.environments` makes all of them.  What is in them is in
tests/clients/requirements, one file an environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from uv import find_uv_bin

from tests.support.processes.locking import alone
from tests.support.processes.program import ROOT

REQUIREMENTS = ROOT / "tests" / "clients" / "requirements"
FOLDER = ROOT / ".venv" / "clients"
CACHE = ROOT / ".venv" / "cache" / "uv"
INSTALL_SECONDS = 250
NAMES = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made if it is not there as its file says."""
    home = FOLDER / name
    wanted = f"{sys.version}\n{(REQUIREMENTS / f'{name}.txt').read_text(encoding='utf-8')}"
    with alone(f"environment-{name}"):
        done = home / ".installed"
        if not done.exists() or done.read_text(encoding="utf-8") != wanted:
            _make(name, home)
            done.write_text(wanted, encoding="utf-8")
    return home / "bin" / "python"


def _make(name: str, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    _uv("venv", "--python", sys.executable, str(home))
    requirements = str(REQUIREMENTS / f"{name}.txt")
    _uv("pip", "install", "--python", str(home / "bin" / "python"), "--requirements", requirements)


def _uv(*arguments: str) -> None:
    """The system's certificates, as pip takes them, and caches in this clone."""
    done = subprocess.run(
        [find_uv_bin(), "--quiet", "--no-config", "--system-certs", *arguments],
        env={"UV_CACHE_DIR": str(CACHE), **os.environ},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)}: {done.stderr[-2000:]}")


if __name__ == "__main__":
    for each in NAMES:
        python_of(each)
