"""Sends commands to the servers that have their keys: one server, or a cluster.  Knows no chats.

redis-py connects, authenticates and parses.  Its pools and retries are not used: a pool costs as
much per command as the command, and ten retries with backoff are no use to a request that waits.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from redis.asyncio.connection import Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from proxy.stores.address import Address
from proxy.stores.redis.wire import Command, ConnectionPool, Node, SentinelPool, raise_errors


class Link(Protocol):
    """Sends commands to whichever server has a key."""

    def server_of(self, key: bytes) -> str:
        """The server that has a key, if known; "" if there is only one server."""
        ...

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        """Send commands for one slot in one round trip; their replies, error replies in place."""
        ...

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send commands for any keys; the replies in order.  Raises the first error reply."""
        ...

    async def each(self, *commands: Command) -> list[list[Any]]:
        """Send commands to every server that has keys; the replies of each, error replies in
        place."""
        ...

    def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """The keys that match, of all servers, in batches; a key may come more than once.

        Examines every key: not for requests.
        """
        ...

    async def close(self) -> None: ...


# One server


class SingleServer:
    """A single server: standalone, or the master that Sentinel names."""

    def __init__(self, pool: ConnectionPool, sentinel: Sentinel | None = None) -> None:
        self._pool = pool
        self._sentinel = sentinel

    def server_of(self, key: bytes) -> str:
        return ""

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        return await self._pool.run(*commands)

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        if not commands:
            return []
        return raise_errors(await self._pool.run(*(command for _, command in commands)))

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._pool.run(*commands)]

    def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        return self._pool.scan(pattern)

    async def close(self) -> None:
        await self._pool.close()
        if self._sentinel is not None:
            for client in self._sentinel.sentinels:
                await client.aclose()


async def collect_keys(found: AsyncIterator[list[bytes]]) -> set[bytes]:
    """All keys that a scan finds."""
    return {key async for keys in found for key in keys}


# A cluster: which server has a slot, and following it when it moves

ATTEMPTS = 5
"""Times that a command is sent at most, to whichever servers."""

PAUSE_SECONDS = 0.02
"""Between two attempts if the cluster is not ready: while a slot is being moved, commands for
several of its keys fail if some are on the old server and some on the new one."""


class Cluster:
    """The servers of a cluster.  ``seeds`` are the configured ones; the others are discovered.

    ``make`` returns a connection to a node, not yet open; ``patience`` is the timeout (s) for the
    table of slots.
    """

    def __init__(
        self, seeds: Sequence[Node], make: Callable[[Node], Connection], patience: float
    ) -> None:
        self._seeds = tuple(seeds)
        self._make = make
        self._patience = patience
        self._pools: dict[Node, ConnectionPool] = {}
        self._table: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._search: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Cluster [{len(set(self._table) - {None})} masters]>"

    def server_of(self, key: bytes) -> str:
        node = self._table[key_slot(key)]
        return f"{node[0]}:{node[1]}" if node else ""

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        slot = key_slot(key)
        node, asking = self._table[slot], False
        error: Exception = RedisConnectionError(f"no server has slot {slot}")
        for _ in range(ATTEMPTS):
            try:
                node = node or await self._node_of(slot)
                replies = await self._send(node, commands, asking)
            except RedisConnectionError as refused:
                error, node, asking = refused, None, False
                continue
            redirect = next((reply for reply in replies if _is_redirect(reply)), None)
            if redirect is None:
                return replies
            error = redirect
            node, asking = self._redirect(redirect, node)
            if node is None:
                await asyncio.sleep(PAUSE_SECONDS)
        if isinstance(error, AskError):  # MOVED too; they say no more than a number and an address
            raise RedisError(f"slot {slot} is moved from server to server") from error
        raise error

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        groups: defaultdict[Node | None, list[int]] = defaultdict(list)
        for place, (key, _) in enumerate(commands):
            groups[self._table[key_slot(key)]].append(place)
        replies: list[Any] = [None] * len(commands)
        for node, places in groups.items():
            found = await self._run_on_node(node, [commands[place] for place in places])
            for place, reply in zip(places, found, strict=True):
                replies[place] = reply
        return raise_errors(replies)

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._pool(node).run(*commands) for node in await self._masters()]

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        for node in await self._masters():
            async for keys in self._pool(node).scan(pattern):
                yield keys

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])
        for pool in self._pools.values():
            await pool.close()

    async def _masters(self) -> set[Node]:
        await asyncio.shield(self._start_search())
        return {node for node in self._table if node}

    async def _run_on_node(
        self, node: Node | None, commands: Sequence[tuple[bytes, Command]]
    ) -> list[Any]:
        """The replies of one server in one round trip, or, if that fails, one after another."""
        if node is not None:
            try:
                replies = await self._pool(node).run(*(command for _, command in commands))
            except RedisConnectionError:
                self._start_search()
            else:
                if not any(_is_redirect(reply) for reply in replies):
                    return replies
        return [(await self.run(key, command))[0] for key, command in commands]

    async def _send(self, node: Node, commands: Sequence[Command], asking: bool) -> list[Any]:
        try:
            if asking:
                # ASKING counts for the next command alone.
                asked = [each for command in commands for each in (("ASKING",), command)]
                return (await self._pool(node).run(*asked))[1::2]
            return await self._pool(node).run(*commands)
        except asyncio.CancelledError:
            # Timed out, perhaps: the server may hang, and another may have its slots by now.
            self._start_search()
            raise

    def _redirect(self, error: Exception, node: Node) -> tuple[Node | None, bool]:
        """The node to try next (None: unknown), and whether with ASKING: the slot is being moved
        there."""
        if isinstance(error, MovedError):
            self._start_search()
            return _redirect_target(error, node), False
        if isinstance(error, AskError):
            return _redirect_target(error, node), True
        return None, False

    def _pool(self, node: Node) -> ConnectionPool:
        if node not in self._pools:
            self._pools[node] = ConnectionPool(lambda: self._make(node))
        return self._pools[node]

    # Finding the servers

    async def _node_of(self, slot: int) -> Node:
        # Shielded: other commands wait for the same search.
        await asyncio.shield(self._start_search())
        node = self._table[slot]
        if node is None:
            raise RedisConnectionError(f"no server has slot {slot}")
        return node

    def _start_search(self) -> asyncio.Task[None]:
        if self._search is None or self._search.done():
            self._search = asyncio.create_task(self._find_owners())
            self._search.add_done_callback(_retrieve_exception)
        return self._search

    async def _find_owners(self) -> None:
        """Ask every known server for the table of slots; the first answer is used.

        That of a server that is cut off from the others is out of date: it is used only if no other
        comes.
        """
        nodes = {*self._seeds, *(node for node in self._table if node)}
        requests = [asyncio.create_task(self._read_slots(node)) for node in nodes]
        reason, outdated = "", None
        try:
            for answer in asyncio.as_completed(requests, timeout=self._patience):
                try:
                    is_up, table = await answer
                except (RedisError, OSError) as error:
                    reason = f": {error}"
                    continue
                if is_up:
                    self._table = table
                    return
                outdated = outdated or table
        finally:
            for request in requests:
                request.cancel()
            await asyncio.gather(*requests, return_exceptions=True)
        if outdated is None:
            text = f"no server of the cluster tells where its slots are{reason}"
            raise RedisConnectionError(text)
        self._table = outdated

    async def _read_slots(self, node: Node) -> tuple[bool, list[Node | None]]:
        """Whether the cluster works, as far as this server knows, and its table of slots."""
        info, ranges = await self._pool(node).run(("CLUSTER", "INFO"), ("CLUSTER", "SLOTS"))
        raise_errors([ranges])  # not every user may ask for INFO
        if not ranges:
            raise RedisConnectionError(f"{node[0]}:{node[1]} knows of no slots")
        table: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for start, end, (host, port, *_), *_ in ranges:
            # No host, or "?": the address that was asked.
            owner = (host.decode() if host and host != b"?" else node[0], port)
            table[start : end + 1] = [owner] * (end + 1 - start)
        is_up = not (isinstance(info, bytes) and b"cluster_state:fail" in info)
        return is_up, table


def _is_redirect(reply: object) -> bool:
    return isinstance(reply, AskError | MovedError | ClusterDownError | TryAgainError)


def _redirect_target(error: AskError, node: Node) -> Node:
    return error.host or node[0], error.port


def _retrieve_exception(search: asyncio.Task[None]) -> None:
    """Retrieve the exception of a search that perhaps nobody awaits, which asyncio would log.  The
    next command searches again."""
    if not search.cancelled():
        search.exception()


# Making a link from an address


def connect(address: Address, patience: float) -> Link:
    """The link to an address; nothing is opened yet.

    ``patience`` is the timeout (s) for asking where the servers are: a cluster's slots, a master.
    """
    if address.kind == "cluster":
        return Cluster(address.nodes, lambda node: _connection(address, node), patience)
    if address.kind == "sentinel":
        return _by_sentinel(address, patience)
    return SingleServer(ConnectionPool(lambda: _connection(address, address.nodes[0])))


def _connection(address: Address, node: Node) -> Connection:
    kind = SSLConnection if address.tls else Connection
    host, port = node
    return kind(host=host, port=port, **_settings(address), **_tls(address))


def _by_sentinel(address: Address, patience: float) -> SingleServer:
    options = address.options
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        list(address.nodes),
        sentinel_kwargs={
            "socket_timeout": patience / 2,
            "socket_connect_timeout": patience / 2,
            "retry": Retry(NoBackoff(), 0),
            "driver_info": None,
            "username": options.get("sentinel_username"),
            "password": options.get("sentinel_password"),
            "ssl": address.tls,
            **_tls(address),
        },
    )
    connections = SentinelConnectionPool(  # type: ignore[no-untyped-call]
        address.service, sentinel, ssl=address.tls, **_settings(address), **_tls(address)
    )
    pool = SentinelPool(
        connections.make_connection, lambda: sentinel.discover_master(address.service)
    )
    return SingleServer(pool, sentinel)


def _settings(address: Address) -> Mapping[str, Any]:
    # No timeouts of redis-py: each would cost a task per command, and the caller's covers
    # connecting, sending and reading.
    return {
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "protocol": 2,
        "socket_timeout": None,
        "socket_connect_timeout": None,
        "socket_keepalive": True,
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 0,
        # CLIENT SETINFO would cost two round trips, and reading the version from the disk.
        "driver_info": None,
    }


def _tls(address: Address) -> Mapping[str, Any]:
    return {name: value for name, value in address.options.items() if name.startswith("ssl_")}
