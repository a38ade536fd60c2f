"""Connections to Redis: how commands get there and replies come back.  Knows no chats.

redis-py connects, authenticates and parses; its pools and its retries are left out: a pool costs as
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
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from proxy.stores.address import Address
from proxy.stores.redis.wire import Command, GuardedLane, Lane, Node, raise_errors


class Link(Protocol):
    """The way to wherever the keys are."""

    def part_of(self, key: bytes) -> str:
        """Which server has a key, as far as known; "" where there is but one."""
        ...

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        """Send commands for one slot together; the replies in order, error replies in place."""
        ...

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        """Send commands for any keys; the replies in order.  Raises the first error reply."""
        ...

    async def each(self, *commands: Command) -> list[list[Any]]:
        """Ask every server that has keys; the replies of each, error replies in place."""
        ...

    def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        """All keys that match, of all servers, some at a time, and some more than once.  Goes
        through every key: not for requests."""
        ...

    async def close(self) -> None: ...


# One server


class Direct:
    """A single server: standalone, or the master that Sentinel names."""

    def __init__(self, lane: Lane, sentinel: Sentinel | None = None) -> None:
        self._lane = lane
        self._sentinel = sentinel

    def part_of(self, key: bytes) -> str:
        return ""

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        return await self._lane.run(*commands)

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        if not commands:
            return []
        return raise_errors(await self._lane.run(*(command for _, command in commands)))

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._lane.run(*commands)]

    def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        return self._lane.scan(pattern)

    async def close(self) -> None:
        await self._lane.close()
        if self._sentinel is not None:
            for client in self._sentinel.sentinels:
                await client.aclose()


async def collect_keys(found: AsyncIterator[list[bytes]]) -> set[bytes]:
    """All keys that a scan finds."""
    return {key async for keys in found for key in keys}


# A cluster: which server has a slot, and following it when it moves

ATTEMPTS = 5
"""How often a command is sent at most, to whichever servers."""

PAUSE_SECONDS = 0.02
"""Between two attempts where the cluster is busy with itself: a slot on its way whose keys lie on
both sides serves no command with several keys."""


class Sharded:
    """The servers of a cluster.  ``seeds`` are those that were named; the others are found.

    ``make`` gives a connection to a node, not yet open; ``patience`` is how long (seconds) the
    nodes may take to tell where the slots are.
    """

    def __init__(
        self, seeds: Sequence[Node], make: Callable[[Node], Connection], patience: float
    ) -> None:
        self._seeds = tuple(seeds)
        self._make = make
        self._patience = patience
        self._lanes: dict[Node, Lane] = {}
        self._table: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._search: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Sharded [{len(set(self._table) - {None})} masters]>"

    def part_of(self, key: bytes) -> str:
        node = self._table[key_slot(key)]
        return f"{node[0]}:{node[1]}" if node else ""

    async def run(self, key: bytes, *commands: Command) -> list[Any]:
        slot = key_slot(key)
        node, asking = self._table[slot], False
        error: Exception = RedisConnectionError(f"no server has slot {slot}")
        for _ in range(ATTEMPTS):
            try:
                node = node or await self._owner(slot)
                replies = await self._send(node, commands, asking)
            except RedisConnectionError as refused:
                error, node, asking = refused, None, False
                continue
            elsewhere = next((reply for reply in replies if _is_elsewhere(reply)), None)
            if elsewhere is None:
                return replies
            error = elsewhere
            node, asking = self._follow(elsewhere, node)
            if node is None:
                await asyncio.sleep(PAUSE_SECONDS)
        raise error

    async def many(self, commands: Sequence[tuple[bytes, Command]]) -> list[Any]:
        groups: defaultdict[Node | None, list[int]] = defaultdict(list)
        for place, (key, _) in enumerate(commands):
            groups[self._table[key_slot(key)]].append(place)
        replies: list[Any] = [None] * len(commands)
        for node, places in groups.items():
            found = await self._group(node, [commands[place] for place in places])
            for place, reply in zip(places, found, strict=True):
                replies[place] = reply
        return raise_errors(replies)

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._lane(node).run(*commands) for node in await self._masters()]

    async def scan(self, pattern: bytes) -> AsyncIterator[list[bytes]]:
        for node in await self._masters():
            async for keys in self._lane(node).scan(pattern):
                yield keys

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])
        for lane in self._lanes.values():
            await lane.close()

    async def _masters(self) -> set[Node]:
        await asyncio.shield(self._start_search())
        return {node for node in self._table if node}

    async def _group(
        self, node: Node | None, commands: Sequence[tuple[bytes, Command]]
    ) -> list[Any]:
        """All from one server in one round trip, or, where that fails, one after another."""
        if node is not None:
            try:
                replies = await self._lane(node).run(*(command for _, command in commands))
            except RedisConnectionError:
                self._start_search()
            else:
                if not any(_is_elsewhere(reply) for reply in replies):
                    return replies
        return [(await self.run(key, command))[0] for key, command in commands]

    async def _send(self, node: Node, commands: Sequence[Command], asking: bool) -> list[Any]:
        try:
            if asking:
                # ASKING counts for the next command alone.
                asked = [each for command in commands for each in (("ASKING",), command)]
                return (await self._lane(node).run(*asked))[1::2]
            return await self._lane(node).run(*commands)
        except asyncio.CancelledError:
            # Out of time, perhaps: the server may hang, and another have its slots by now.
            self._start_search()
            raise

    def _follow(self, error: Exception, node: Node) -> tuple[Node | None, bool]:
        """Where to ask next, and whether with ASKING: the slot is on its way there."""
        if isinstance(error, MovedError):
            self._start_search()
            return _target(error, node), False
        if isinstance(error, AskError):
            return _target(error, node), True
        return None, False

    def _lane(self, node: Node) -> Lane:
        if node not in self._lanes:
            self._lanes[node] = Lane(lambda: self._make(node))
        return self._lanes[node]

    # Finding the servers

    async def _owner(self, slot: int) -> Node:
        # Shielded: others wait for the same search.
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
        """Ask every server that is known; the first that answers is believed."""
        nodes = {*self._seeds, *(node for node in self._table if node)}
        questions = [asyncio.create_task(self._ask(node)) for node in nodes]
        told = ""
        try:
            for answer in asyncio.as_completed(questions, timeout=self._patience):
                try:
                    self._table = await answer
                except (RedisError, OSError) as error:
                    told = f": {error}"
                    continue
                return
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        raise RedisConnectionError(f"no server of the cluster tells where its slots are{told}")

    async def _ask(self, node: Node) -> list[Node | None]:
        (ranges,) = raise_errors(await self._lane(node).run(("CLUSTER", "SLOTS")))
        if not ranges:
            raise RedisConnectionError(f"{node[0]}:{node[1]} knows of no slots")
        table: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for start, end, (host, port, *_), *_ in ranges:
            # Without a host of its own a server means the address it was asked at.
            owner = (host.decode() if host and host != b"?" else node[0], port)
            table[start : end + 1] = [owner] * (end + 1 - start)
        return table


def _is_elsewhere(reply: object) -> bool:
    return isinstance(reply, AskError | MovedError | ClusterDownError | TryAgainError)


def _target(error: AskError, node: Node) -> Node:
    return error.host or node[0], error.port


def _retrieve_exception(search: asyncio.Task[None]) -> None:
    """Look at the exception of a search that perhaps nobody awaits: asyncio would complain.  It
    shows in the next command."""
    if not search.cancelled():
        search.exception()


# From an address to the way there


def connect(address: Address, patience: float) -> Link:
    """The link to an address; nothing is opened yet.

    ``patience`` in seconds is what a server may take that only tells where others are.
    """
    if address.kind == "cluster":
        return Sharded(address.nodes, lambda node: _connection(address, node), patience)
    if address.kind == "sentinel":
        return _by_sentinel(address, patience)
    return Direct(Lane(lambda: _connection(address, address.nodes[0])))


def _connection(address: Address, node: Node) -> Connection:
    kind = SSLConnection if address.tls else Connection
    host, port = node
    return kind(host=host, port=port, **_settings(address), **_tls(address))


def _by_sentinel(address: Address, patience: float) -> Direct:
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
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
        address.service, sentinel, ssl=address.tls, **_settings(address), **_tls(address)
    )
    lane = GuardedLane(pool.make_connection, lambda: sentinel.discover_master(address.service))
    return Direct(lane, sentinel)


def _settings(address: Address) -> Mapping[str, Any]:
    # No time limits of its own: the caller's limit covers connecting, asking and reading, and
    # redis-py's cost a task for each command.
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
        # What redis-py tells of itself costs two round trips, and its version a look at the disk.
        "driver_info": None,
    }


def _tls(address: Address) -> Mapping[str, Any]:
    return {name: value for name, value in address.options.items() if name.startswith("ssl_")}
