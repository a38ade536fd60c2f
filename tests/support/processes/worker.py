"""The program as its users run it: a supervisor and its workers, to be killed all at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

from tests.support.processes.program import surroundings
from tests.support.processes.redis import wait_until
from tests.support.processes.running import PATIENT
from tests.support.waiting import PATIENCE


class Served:
    """``memory-proxy serve`` in a process group of its own."""

    def __init__(self, folder: Path, arguments: list[str], settings: dict[str, str]) -> None:
        self._folder = folder
        self._arguments = ["serve", "--port", "0", *arguments]
        folder.mkdir(exist_ok=True)
        # What a killed supervisor leaves in the temporary folder goes with the test's own.
        self._environ = surroundings(TMPDIR=str(folder), NO_COLOR="1", **settings)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def start(self, ahead: float = 0.0) -> None:
        """Returns once it listens; workers may still be on their way.

        Its clock, if it is one process, is so many seconds ``ahead``.
        """
        program = ["tests.support.processes.ahead", str(ahead)] if ahead else ["proxy"]
        with (self._folder / "errors.log").open("a") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *program, *self._arguments],
                cwd=self._folder,
                env=self._environ,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, _, value = line.strip().partition("  ")
            if name == "listening on":
                self.url = value.strip()
                return
        raise AssertionError(f"it did not start: {self.errors()}")

    def errors(self) -> str:
        return (self._folder / "errors.log").read_text()

    def counted(self, name: str) -> list[int]:
        """A counter of each worker by itself: every one keeps a file of its own."""
        return [
            int(sum(value for key, value, *_ in _values(file) if json.loads(key)[1] == name))
            for file in self._counters()
        ]

    def wait_for_workers(self, count: int) -> None:
        """From then on each may get a request; a busy machine starts one long after another."""
        wait_until(lambda: len(self._counters()) == count, f"the start of {count} workers")

    def _counters(self) -> list[Path]:
        """Those of workers that have begun: one that is just starting has an empty file."""
        files = sorted(self._folder.glob("memory-proxy-*/counter_*.db"))
        return [file for file in files if file.stat().st_size]

    def kill(self) -> None:
        """SIGKILL for supervisor and workers, in one system call."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def bury(self) -> None:
        """Wait for what was killed."""
        process, self._process = self._process, None
        if process is not None:
            process.wait(PATIENCE)
            if process.stdout is not None:
                process.stdout.close()


def _values(file: Path) -> Iterator[tuple[str, float]]:
    read = MmapedDict.read_all_values_from_file
    yield from read(str(file))  # type: ignore[no-untyped-call]


@contextmanager
def served(
    folder: Path, upstream: str, store: str, workers: int = 2, **settings: str
) -> Iterator[Served]:
    """Started, and killed at the end.  ``spool__path="..."`` is a setting."""
    arguments = ["--upstream", upstream, "--store", store, "--workers", str(workers)]
    values = {f"MEMORY_PROXY_{name.upper()}": value for name, value in settings.items()}
    values.setdefault("MEMORY_PROXY_SPOOL__PATH", str(folder / "spool.db"))
    for name, seconds in PATIENT.items():
        values.setdefault(f"MEMORY_PROXY_{name.upper()}", str(seconds))
    program = Served(folder, [*arguments, "--log-level", "error"], values)
    try:
        program.start()
        yield program
    finally:
        program.kill()
        program.bury()
