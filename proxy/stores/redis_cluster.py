"""The way into a Redis Cluster: which server has a slot, and following it when it moves."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from redis.asyncio.connection import AbstractConnection
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from proxy.stores.redis_link import Command, Lane, checked

Node: TypeAlias = tuple[str, int]

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
        self, seeds: Sequence[Node], make: Callable[[Node], AbstractConnection], patience: float
    ) -> None:
        self._seeds = tuple(seeds)
        self._make = make
        self._patience = patience
        self._lanes: dict[Node, Lane] = {}
        self._table: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._search: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Sharded [{len(set(self._table) - {None})} masters]>"

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
        return checked(replies)

    async def each(self, *commands: Command) -> list[list[Any]]:
        return [await self._lane(node).run(*commands) for node in await self._masters()]

    async def scan(self, pattern: bytes) -> list[bytes]:
        nodes = await self._masters()
        return [key for node in nodes for key in await self._lane(node).scan(pattern)]

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
                return (await self._lane(node).run(("ASKING",), *commands))[1:]
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
            self._search.add_done_callback(_retrieve)
        return self._search

    async def _find_owners(self) -> None:
        """Ask every server that is known; the first that answers is believed."""
        nodes = {*self._seeds, *(node for node in self._table if node)}
        questions = [asyncio.create_task(self._ask(node)) for node in nodes]
        try:
            for answer in asyncio.as_completed(questions, timeout=self._patience):
                try:
                    self._table = await answer
                except (RedisError, OSError):
                    continue
                return
        finally:
            for question in questions:
                question.cancel()
            await asyncio.gather(*questions, return_exceptions=True)
        raise RedisConnectionError("no server of the cluster tells where its slots are")

    async def _ask(self, node: Node) -> list[Node | None]:
        (ranges,) = checked(await self._lane(node).run(("CLUSTER", "SLOTS")))
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


def _retrieve(search: asyncio.Task[None]) -> None:
    """Nobody may be waiting for a search: its failure shows in the next command."""
    if not search.cancelled():
        search.exception()
