"""uv, as tests use it: it makes environments in seconds where pip takes minutes."""

from __future__ import annotations

import subprocess

from uv import find_uv_bin

from tests.support.processes.authorities import with_the_systems
from tests.support.processes.program import ROOT

CACHE = ROOT / ".venv" / "cache" / "uv"
SECONDS = 250


def uv(*arguments: str) -> str:
    """Its output.  With the system's certificates, as pip takes them, and a cache in this clone."""
    done = subprocess.run(
        [find_uv_bin(), "--quiet", "--no-config", "--system-certs", *arguments],
        cwd=ROOT.parent,
        env={"UV_CACHE_DIR": str(CACHE), **with_the_systems()},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)}: {done.stdout}{done.stderr[-2000:]}")
    return done.stdout
