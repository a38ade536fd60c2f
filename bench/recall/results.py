"""A result as it is kept: with what was measured, where and when."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
_NOTHING_ELSE = ("--", "proxy", "bench", f":(exclude){RESULTS.relative_to(ROOT)}")
"""What a measurement depends on."""


@dataclass(frozen=True, slots=True)
class Made:
    """How a result was made.  ``arguments`` are those of ``make recall``'s ARGS."""

    arguments: str
    commit: str
    day: str
    machine: str

    @classmethod
    def now(cls, arguments: str) -> Made:
        machine = (
            f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}"
        )
        return cls(arguments, commit(), f"{datetime.now(UTC):%Y-%m-%d}", machine)


def page(dataset: str, name: str, table: str, notes: Sequence[str], made: Made) -> str:
    """A result as Markdown."""
    lines = [
        f"# Recall: {dataset}, {name}",
        table,
        *notes,
        f"Commit {made.commit}, {made.day} (UTC); {made.machine}. `{made.arguments}`.",
        "How it is measured: [bench](../README.md#does-recall-find-it).",
    ]
    return "\n\n".join(lines) + "\n"


def place(dataset: str, name: str, *otherwise: str) -> Path:
    """Where it is kept: the same file for the same data, ``otherwise`` measured in another."""
    slug = re.sub(r"[^a-z0-9]+", "-", " ".join([dataset, name, *otherwise]).lower()).strip("-")
    return RESULTS / f"recall-{slug}.md"


def commit() -> str:
    """The commit that is measured; whether files differ from it; "unknown" outside of git."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return "unknown"
    changed = _git("status", "--porcelain", "--untracked-files=no", *_NOTHING_ELSE)
    return f"{head}, with changes" if changed else head


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
