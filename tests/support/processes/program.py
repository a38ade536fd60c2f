"""Programs of ours as processes: started, spoken to, always ended."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


WARNINGS = "default,ignore:Binding:DeprecationWarning"
"""All but what Python 3.12.0 to 3.12.3 say by mistake: see pyproject.toml."""


def surroundings(**changes: str) -> dict[str, str]:
    """Our environment without anybody's settings, and with the project importable anywhere."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MEMORY_PROXY_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": WARNINGS, **changes}


def ran(script: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own has run these statements, without a failure."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )


@contextmanager
def running(
    arguments: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    errors: IO[str] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """``python -m`` these arguments in ``folder``, with its output as text; killed at the end.

    Who asks it more than some hundred things gives a file for the ``errors``: a program that logs
    into a pipe that nobody reads stands still once 64 KiB are in it.
    """
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=surroundings(**(environ or {})),
        stdout=subprocess.PIPE,
        stderr=errors or subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str], containing: str = "") -> str:
    """The next line of its output that contains this; fails with its errors if it ends before."""
    assert process.stdout is not None
    for text in process.stdout:
        if containing in text:
            return text.strip()
    told = "its errors are in a file" if process.stderr is None else process.stderr.read()
    raise AssertionError(f"it ended without saying {containing!r}: {told}")


def clients_in(folder: Path) -> Path:
    """A configuration with the client alice."""
    config = folder / "proxy.toml"
    digest = hashlib.sha256(b"sk-alice").hexdigest()
    config.write_text(
        '[tenancy]\nmode = "clients"\n[upstream]\napi_key = "sk-up"\n'
        f'[spool]\npath = "{folder}/spool.db"\n'
        f'[[clients]]\nname = "alice"\nkey_sha256 = ["{digest}"]\n'
    )
    return config
