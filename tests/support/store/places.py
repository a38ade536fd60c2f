"""Where a store keeps what it is given, and a raw look at all of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes import redis as servers
from tests.support.rig import Rig
from tests.support.store.scanning import (
    found_in_files,
    found_in_memory,
    found_in_object,
    found_in_redis,
)

STORES = ("memory", "sqlite", "redis", "redis-cluster")

_LESS_OFTEN = ("memory", "redis-cluster")

IN_CHATS = tuple(
    pytest.param(name, marks=[pytest.mark.release] * (name in _LESS_OFTEN)) for name in STORES
)
"""That a chat does in memory and in a cluster what it does elsewhere is asked before a release
alone: what they do as stores is asked always."""

IN_GROUPS = tuple(
    pytest.param(*one.values, marks=[*one.marks, pytest.mark.xdist_group(str(one.values[0]))])
    for one in IN_CHATS
)
"""With the tests on a store as one group, for a proxy that they share."""


@dataclass(frozen=True)
class Place:
    """A store's URL, the folder of all files, and the servers."""

    url: str
    folder: Path
    servers: Sequence[servers.Server] = ()

    def scan(self, one: Rig, *markers: str) -> list[str]:
        """Where one of these is: in the store, the spool, or any other file."""
        found = found_in_files(self.folder, *markers)
        for server in self.servers:
            found += found_in_redis(server, *markers)
        if self.url == "memory://":
            found += found_in_object(one.store.real, *markers)
            found += found_in_memory(one.store.real, *markers)
        return found


class Places:
    """Servers are started when they are first asked for; then they are emptied for each test."""

    def __init__(self, started: ExitStack) -> None:
        self._started = started
        self._servers: dict[str, tuple[str, Sequence[servers.Server]]] = {}

    def of(self, store: str, folder: Path) -> Place:
        """A place with nothing in it."""
        if store == "memory":
            return Place("memory://", folder)
        if store == "sqlite":
            return Place(f"sqlite:///{folder}/memory.db", folder)
        if store not in self._servers:
            self._servers[store] = self._start(store)
        url, masters = self._servers[store]
        for server in masters:
            server.ask("FLUSHALL")
        return Place(url, folder, masters)

    def _start(self, store: str) -> tuple[str, Sequence[servers.Server]]:
        if store == "redis":
            server = self._started.enter_context(servers.standalone())
            return server.url, [server]
        cluster = self._started.enter_context(servers.cluster())
        return cluster.url, cluster.masters
