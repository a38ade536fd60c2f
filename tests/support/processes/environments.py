"""Environments with other people's client libraries, which uv installs into .venv/clients, once.

`python -m tests.support.processes.environments` makes all of them.  What is in them is in
tests/clients/requirements, one file an environment.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.support.processes.locking import alone
from tests.support.processes.packages import uv
from tests.support.processes.program import ROOT

REQUIREMENTS = ROOT / "tests" / "clients" / "requirements"
FOLDER = ROOT / ".venv" / "clients"
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
    uv("venv", "--python", sys.executable, str(home))
    requirements = str(REQUIREMENTS / f"{name}.txt")
    uv("pip", "install", "--python", str(home / "bin" / "python"), "--requirements", requirements)


if __name__ == "__main__":
    for each in NAMES:
        python_of(each)
