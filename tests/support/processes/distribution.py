"""Wheel and source distribution, made with uv, and environments with nothing else in them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.packages import uv
from tests.support.processes.program import ROOT


@dataclass(frozen=True, slots=True)
class Distribution:
    wheel: Path
    source: Path


def build(folder: Path) -> Distribution:
    """Both into the folder, the wheel from the source, as an index' users have it."""
    uv("build", "--out-dir", str(folder), str(ROOT))
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Distribution(wheel, source)


def install(wheel: Path, home: Path, extra: str = "") -> Path:
    """A new environment with the wheel; the folder of its commands."""
    uv("venv", "--python", sys.executable, str(home))
    wanted = f"memory-proxy[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    uv("pip", "install", "--python", str(home / "bin" / "python"), wanted)
    return home / "bin"
