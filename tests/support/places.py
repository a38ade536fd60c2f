"""Where a store keeps what it is given, and a raw look at all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import servers
from tests.support.rig import Rig
from tests.support.scanning import found_in_files, found_in_object, found_in_redis

STORES = ("memory", "sqlite", "redis", "redis-cluster")


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
        return found


@contextmanager
def place_of(store: str, folder: Path) -> Iterator[Place]:
    with ExitStack() as started:
        if store == "memory":
            yield Place("memory://", folder)
        elif store == "sqlite":
            yield Place(f"sqlite:///{folder}/memory.db", folder)
        elif store == "redis":
            server = started.enter_context(servers.standalone())
            yield Place(server.url, folder, [server])
        else:
            cluster = started.enter_context(servers.cluster())
            yield Place(cluster.url, folder, cluster.masters)
