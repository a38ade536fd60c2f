"""What both clients of the upstream promise of connections: kept if whole, closed if not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from proxy.wire.upstream import Reply, Upstream
from tests.support.talk.asking import CHAT, ask
from tests.support.upstream.scripted import Script, ScriptedUpstream, sse
from tests.support.waiting import PATIENCE


async def test_a_connection_is_used_again(upstream: Upstream, up: ScriptedUpstream) -> None:
    for _ in range(3):
        await ask(upstream)
    assert {request.connection for request in up.requests} == {1}


async def test_many_streams_run_at_once_and_their_connections_are_kept(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    for _ in range(2):
        gate = asyncio.Event()
        up.always(sse([b"data: 1\n\n", gate, b"data: 2\n\n"]))
        replies: Sequence[Reply] = await asyncio.gather(
            *(upstream.send("POST", CHAT, [], b"{}") for _ in range(60))
        )
        assert upstream.exchanges == 60
        assert "60" in repr(upstream)
        gate.set()
        for reply in replies:
            assert await reply.read() == b"data: 1\n\ndata: 2\n\n"
            await reply.close()
    assert up.total_connections == 60


async def test_closing_twice_is_closing_once(upstream: Upstream, up: ScriptedUpstream) -> None:
    reply = await upstream.send("POST", CHAT, [], b"{}")
    await reply.read()
    await reply.close()
    await reply.close()
    assert upstream.exchanges == 0


async def test_closing_in_the_middle_closes_the_connection(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(sse([b"data: 1\n\n"], hang="body"))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    assert await anext(reply.chunks()) == b"data: 1\n\n"
    await reply.close()
    await asyncio.wait_for(up.requests[0].gone.wait(), PATIENCE)
    await up.wait_connections(0)


async def test_cancelling_before_the_head_closes_the_connection(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(hang="headers"))
    task = asyncio.create_task(upstream.send("POST", CHAT, [], b"{}"))
    request = await up.wait_for()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(request.gone.wait(), PATIENCE)
    assert upstream.exchanges == 0


async def test_cancelling_a_read_and_closing_closes_the_connection(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(sse([b"data: 1\n\n"], hang="body"))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    task = asyncio.create_task(reply.read())
    request = await up.wait_for()
    await asyncio.wait({task}, timeout=0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await reply.close()
    await asyncio.wait_for(request.gone.wait(), PATIENCE)
    await up.wait_connections(0)
