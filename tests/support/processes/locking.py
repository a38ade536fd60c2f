"""What is installed once for all, whichever of several test processes comes first."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes.program import ROOT


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process of this clone at a time; the others wait."""
    folder = ROOT / ".venv" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
