"""From an address to the way there: which connections, to whom, with what credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff

from proxy.stores.address import Address
from proxy.stores.redis_cluster import Node, Sharded
from proxy.stores.redis_link import Direct, Link


def connect(address: Address, patience: float) -> Link:
    """The link to an address; nothing is opened yet.

    ``patience`` in seconds is what a server may take that only tells where others are.
    """
    if address.kind == "cluster":
        return Sharded(address.nodes, lambda node: _connection(address, node), patience)
    if address.kind == "sentinel":
        return _by_sentinel(address, patience)
    return Direct(lambda: _connection(address, address.nodes[0]))


def _connection(address: Address, node: Node) -> AbstractConnection:
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
            "username": options.get("sentinel_username"),
            "password": options.get("sentinel_password"),
            "ssl": address.tls,
            **_tls(address),
        },
    )
    pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
        address.service, sentinel, ssl=address.tls, **_settings(address), **_tls(address)
    )
    return Direct(pool.make_connection, sentinel)


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
    }


def _tls(address: Address) -> Mapping[str, Any]:
    return {name: value for name, value in address.options.items() if name.startswith("ssl_")}
