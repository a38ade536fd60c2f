"""When the relay's own client uses an idle connection again: a POST on a closed one is lost."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from proxy.wire.body import PIECE
from proxy.wire.direct import upstream as upstreams
from proxy.wire.direct.connection import Connection
from proxy.wire.direct.upstream import DirectUpstream
from proxy.wire.failures import UpstreamUnreachable
from proxy.wire.origin import UpstreamOptions
from tests.support.talk.asking import RawHeaders, ask
from tests.support.waiting import PATIENCE

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


@pytest.fixture
async def direct(listener: socket.socket) -> AsyncIterator[DirectUpstream]:
    upstream = DirectUpstream(UpstreamOptions(f"http://127.0.0.1:{listener.getsockname()[1]}"))
    await upstream.open()
    yield upstream
    await upstream.close()


async def _answer(
    asking: asyncio.Task[tuple[int, RawHeaders, bytes]], connection: socket.socket
) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        await loop.sock_recv(connection, 65536)
        await loop.sock_sendall(connection, OK)
        assert (await asking)[2] == b"ok"


async def _accept(
    asking: asyncio.Task[tuple[int, RawHeaders, bytes]], listener: socket.socket
) -> socket.socket:
    """The new connection that a request comes by, answered."""
    async with asyncio.timeout(PATIENCE):
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
    await _answer(asking, connection)
    return connection


async def _ask_by_a_new_one(direct: DirectUpstream, listener: socket.socket) -> socket.socket:
    """Ask where no connection can be used again; the one that the request came by, answered."""
    return await _accept(asyncio.create_task(ask(direct)), listener)


async def test_a_connection_that_was_closed_this_moment_is_not_used(
    direct: DirectUpstream, listener: socket.socket
) -> None:
    """The loop has not read its end yet when the next request is sent."""
    connection = await _ask_by_a_new_one(direct, listener)
    asking = asyncio.create_task(ask(direct))
    connection.close()
    (await _accept(asking, listener)).close()


async def test_an_upstream_that_closes_idle_connections_is_asked_by_new_ones(
    direct: DirectUpstream, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some time before it would close them: here at once, as no share of the time is left."""
    monkeypatch.setattr(upstreams, "IDLE_MARGIN", 0.0)
    monkeypatch.setattr(upstreams, "MIN_IDLE_SECONDS", 0.0)
    (await _ask_by_a_new_one(direct, listener)).close()
    with await _ask_by_a_new_one(direct, listener):  # and stays open
        (await _ask_by_a_new_one(direct, listener)).close()


async def test_an_upstream_that_was_restarted_is_asked_by_one_that_it_has(
    direct: DirectUpstream, listener: socket.socket
) -> None:
    """What its restart closed was idle for a moment only, which says nothing of the others."""
    (await _ask_by_a_new_one(direct, listener)).close()
    with await _ask_by_a_new_one(direct, listener) as connection:
        await _answer(asyncio.create_task(ask(direct)), connection)


@pytest.mark.parametrize("size", [2, 3 * PIECE])
async def test_a_request_that_meets_the_end_of_a_connection_is_sent_again(
    direct: DirectUpstream,
    listener: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    """Nothing of it was received: the connection was closed before."""
    monkeypatch.setattr(Connection, "has_unread", lambda connection: False)
    connection = await _ask_by_a_new_one(direct, listener)
    asking = asyncio.create_task(ask(direct, body=b"x" * size))
    connection.close()
    (await _accept(asking, listener)).close()


async def test_a_request_that_was_received_is_not_sent_again(
    direct: DirectUpstream, listener: socket.socket
) -> None:
    """Whether or not the upstream has done something for it."""
    with await _ask_by_a_new_one(direct, listener) as connection:
        asking = asyncio.create_task(ask(direct))
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().sock_recv(connection, 65536)
    with pytest.raises(UpstreamUnreachable):
        await asking
