"""Programs for the command line, each run as its user would: a process a question."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 100


class Failed(Exception):
    """It ended with a status other than 0."""


def ran(program: str, *arguments: str, **environ: str) -> str:
    """What a program of this environment printed."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise Failed(done.stderr)
    return done.stdout.strip()
