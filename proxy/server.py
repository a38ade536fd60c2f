"""The listening socket and the processes behind it.  Knows uvicorn; must not know the application.

One worker serves in this process.  Several are spawned, not forked, around one socket that listens
before any of them starts: a port in use is found at once, and early connections wait instead of
being refused.
"""

from __future__ import annotations

import errno
import functools
import logging
import math
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from asyncio import Protocol
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from proxy import logs
from proxy.process.descriptors import raise_limit
from proxy.process.runtime import (
    keep_uncollected,
    prepare_threads,
    return_large_memory,
    use_huge_pages,
    use_quiet_threads,
)
from proxy.settings import ServerSettings, Settings
from proxy.telemetry import FOLDER
from proxy.wire.server import HttpProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess

    from starlette.types import ASGIApp

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
"""Longer than the limits of clients (nginx 60, httpx 5), so that the client closes first."""

HUNG_SECONDS = 60.0
"""A worker that does not answer for so long is replaced, and one that has not ended so long after
``shutdown_timeout`` is killed.  A worker may take many seconds to start on a busy machine, and
ending a slow one would cut its streams."""

_LOG = logging.getLogger("proxy.server")


class ServerError(Exception):
    """The server cannot start; the message is for the operator."""


def run(
    settings: Settings,
    factory: Callable[[], ASGIApp],
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP, then drain; returns when all is done.

    ``factory`` makes the application in each worker; it is pickled if there are several.
    ``announce`` is called with the address, ``http://127.0.0.1:8080``, once it is bound.
    Raises ServerError if the port cannot be bound or the application does not start.
    """
    with listen(settings.server) as listener:
        config = _configuration(settings, factory)
        descriptors = raise_limit()  # the workers inherit it
        address = address_of(listener)
        announce(address)
        _LOG.info("listening", extra={"fields": {"address": address, "descriptors": descriptors}})
        serve = _serve_here if settings.server.workers == 1 else _serve_in_workers
        with _address_file(settings.server.address_file, loopback_address(address)):
            serve(config, listener)


def listen(server: ServerSettings) -> socket.socket:
    """A listening socket.  Port 0 takes any free one.  Raises ServerError."""
    place = f"{server.host}:{server.port}"
    try:
        found = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise ServerError(f"there is no address for the host {server.host!r}") from error
    # asyncio sets TCP_NODELAY only on sockets with this protocol; without it answers wait 40 ms.
    listener = socket.socket(found[0][0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(found[0][4])
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ServerError(f"cannot listen on {place}: {_reason(error)}") from error
    listener.set_inheritable(True)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def loopback_address(address: str) -> str:
    """The address with a wildcard host replaced by loopback, for clients on this machine."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@contextmanager
def _address_file(path: str | None, address: str) -> Iterator[None]:
    """Write the address to a file while the block runs.  Raises ServerError.

    The file is not removed if another proxy has replaced it while this one was draining.
    """
    if path is None:
        yield
        return
    file = Path(path)
    try:
        file.write_text(address, encoding="ascii")
        ours = _identity_of(file)
    except OSError as error:
        raise ServerError(f"cannot write the file {path}: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            if _identity_of(file) == ours:
                file.unlink()


def _identity_of(file: Path) -> tuple[int, int]:
    """Identifies the file that we wrote: another one may have the same content."""
    found = file.stat()
    return found.st_ino, found.st_mtime_ns


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; choose another with --host"
    text = (error.strerror or str(error)).lower()
    return f"{text}; choose another port with --port"


def _configuration(settings: Settings, factory: Callable[[], ASGIApp]) -> uvicorn.Config:
    server = settings.server
    return uvicorn.Config(
        Application(factory),
        factory=True,
        interface="asgi3",
        loop="auto",  # uvloop where it exists
        http=HttpProtocolFactory(server.max_header_bytes),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        workers=server.workers,
        log_config=logs.configuration(server.log_level, server.log_format),
        access_log=False,  # ours says more and costs less
        # The peer decides who is on loopback; X-Forwarded-For must not.
        proxy_headers=False,
        server_header=False,
        date_header=True,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(server.shutdown_timeout),
    )


def embedded_config(
    application: ASGIApp, ending: int, lifespan: Literal["auto", "on", "off"] = "auto"
) -> uvicorn.Config:
    """The configuration of a server in a command: without logs, with ``ending`` seconds to
    drain."""
    return uvicorn.Config(
        application,
        interface="asgi3",
        lifespan=lifespan,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=ending,
    )


def _serve_here(config: uvicorn.Config, listener: socket.socket) -> None:
    server = uvicorn.Server(config)
    with _exit_normally():
        try:
            server.run(sockets=[listener])
        except SystemExit as end:
            if end.code == STARTUP_FAILURE:
                raise _not_started() from end
            raise


def _serve_in_workers(config: uvicorn.Config, listener: socket.socket) -> None:
    with _summed_metrics():
        workers = _Workers(config, sockets=[listener])
        workers.run()
    if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
        raise _not_started()


@contextmanager
def _summed_metrics() -> Iterator[None]:
    """Make a folder for the workers' metrics and set it in the environment that they inherit.

    If it cannot be made, each worker reports its own metrics.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="memory-proxy-", ignore_cleanup_errors=True)
    except OSError as error:
        _LOG.warning("no folder for the workers' metrics, each tells its own: %s", error.strerror)
        yield
        return
    with made as folder:
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


class _Workers(Multiprocess):
    """Supervises worker processes: all stop listening on shutdown, and slow ones are waited for,
    but not for ever.

    The supervisor closes the shared socket too: else the system would go on accepting connections
    that no worker serves.
    """

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket]) -> None:
        ignored = _ignores_hangup()
        super().__init__(config, sockets)
        self._signs: dict[Process, float] = {}  # when each was last heard of
        if ignored:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended or hang.  uvicorn's own method kills a worker that does
        not answer within five seconds."""
        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set() or self._is_alive(worker):
                continue
            worker.kill()
            worker.join()
            if worker.exitcode == STARTUP_FAILURE:
                self.should_exit.set()
                return
            _LOG.warning("worker %s has ended: another one takes its place", worker.pid)
            del self._signs[worker]
            self.processes[place] = Process(self.config, self.sockets)
            self.processes[place].start()

    def _is_alive(self, worker: Process) -> bool:
        now = time.monotonic()
        if worker.ping(0):  # the answer to an earlier one: nobody waits for this one's
            self._signs[worker] = now
            while worker.parent_conn.poll():  # those of a time when it was slow tell nothing now
                worker.parent_conn.recv()
        silent = now - self._signs.setdefault(worker, now)
        return worker.process.is_alive() and silent < HUNG_SECONDS

    def handle_hup(self) -> None:
        _LOG.info("told to end by SIGHUP")
        self.should_exit.set()

    def terminate_all(self) -> None:
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        """Wait until all have ended, and kill those that do not.  uvicorn's own waits for ever."""
        patience = (self.config.timeout_graceful_shutdown or 0) + HUNG_SECONDS
        deadline = time.monotonic() + patience
        for worker in self.processes:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                _LOG.warning("worker %s does not end and is killed", worker.pid)
                worker.kill()
            worker.join()


def _not_started() -> ServerError:
    return ServerError("the proxy did not start; the lines above say why")


@contextmanager
def _exit_normally() -> Iterator[None]:
    """Let a drained server exit with status 0 after SIGINT or SIGTERM.

    uvicorn raises the signal again after its shutdown, for the previous handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # uvicorn handles signals in the main thread only
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.flush()
    finally:
        signal.signal(signal.SIGTERM, before)


class Application(msgspec.Struct, frozen=True):
    """Makes the application; on failure exits with the status on which uvicorn does not restart."""

    factory: Callable[[], ASGIApp]

    def __call__(self) -> ASGIApp:
        _drain_on_hangup()
        _exit_with_supervisor()
        try:
            prepare_threads()
            use_quiet_threads()
            return_large_memory()
            use_huge_pages()
            with keep_uncollected():
                return self.factory()
        except Exception:  # noqa: BLE001 - any other exit would be restarted for ever
            _LOG.exception("the application cannot be made")
            sys.exit(STARTUP_FAILURE)


def _drain_on_hangup() -> None:
    """Handle SIGHUP (closed terminal, reload) like SIGTERM, so that requests are drained.

    If it is ignored, as under nohup, it stays ignored.
    """
    in_charge = threading.current_thread() is threading.main_thread()
    if hasattr(signal, "SIGHUP") and in_charge and not _ignores_hangup():
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def _exit_with_supervisor() -> None:
    """End this worker if its supervisor is killed: it would keep the port from a new one."""
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        threading.Thread(target=_wait_for_supervisor, args=(supervisor,), daemon=True).start()


def _wait_for_supervisor(supervisor: BaseProcess) -> None:
    supervisor.join()
    _LOG.warning("the supervisor has ended, and so does this worker")
    if folder := os.environ.get(FOLDER):  # the supervisor cannot remove it any more
        shutil.rmtree(folder, ignore_errors=True)
    signal.raise_signal(signal.SIGTERM)


def _ignores_hangup() -> bool:
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


class HttpProtocolFactory(msgspec.Struct, frozen=True):
    """Makes a connection's protocol with our limit on request heads; can be pickled."""

    max_head_bytes: int

    def __call__(self, **arguments: Any) -> Protocol:
        return _protocol(self.max_head_bytes)(**arguments)


@functools.cache
def _protocol(max_head_bytes: int) -> type[HttpProtocol]:
    return type("HttpProtocol", (HttpProtocol,), {"max_head_bytes": max_head_bytes})
