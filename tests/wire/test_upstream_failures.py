"""What both clients of the upstream make of failures."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from proxy.wire.failures import UpstreamBroken, UpstreamTimeout, UpstreamUnreachable
from proxy.wire.upstream import Upstream
from tests.support.talk.asking import CHAT, read_until_failure
from tests.support.upstream.scripted import (
    DROPPED,
    SILENT,
    Script,
    ScriptedUpstream,
    json_answer,
    sse,
)
from tests.support.waiting import PATIENCE
from tests.wire.conftest import Connect


async def test_refused_is_unreachable(connect: Connect, unused_port: int) -> None:
    async with connect(f"http://127.0.0.1:{unused_port}/v1") as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send("POST", CHAT, [], b"{}")


async def test_an_unknown_name_is_unreachable(connect: Connect) -> None:
    async with connect("http://no-such-host.invalid/v1", connect_timeout=10.0) as upstream:
        with pytest.raises(UpstreamUnreachable):
            await upstream.send("POST", CHAT, [], b"{}")


@pytest.mark.parametrize("size", [2, 1_000_000], ids=["small", "large"])
async def test_a_post_dropped_before_its_answer_is_unreachable_and_sent_once(
    upstream: Upstream, up: ScriptedUpstream, size: int
) -> None:
    up.always(DROPPED)
    with pytest.raises(UpstreamUnreachable):
        await upstream.send("POST", CHAT, [], b"x" * size)
    assert len(up.requests) == 1


async def test_a_post_dropped_on_a_kept_connection_is_sent_once(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(json_answer({}), DROPPED)
    reply = await upstream.send("POST", CHAT, [], b"{}")
    await reply.read()
    await reply.close()
    with pytest.raises(UpstreamUnreachable):
        await upstream.send("POST", CHAT, [], b"{}")
    assert [request.connection for request in up.requests] == [1, 1]


async def test_a_connection_that_the_upstream_closed_while_idle_is_not_used(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(pieces=(b"{}",), close=True))
    for _ in range(2):
        reply = await upstream.send("POST", CHAT, [], b"{}")
        assert await reply.read()
        await reply.close()
        await up.wait_connections(0 if up.total_connections == 1 else 1)
    assert [request.connection for request in up.requests] == [1, 2]


async def test_no_answer_in_time_is_a_timeout(connect: Connect, up: ScriptedUpstream) -> None:
    up.reply(SILENT)
    async with connect(up.url, read_timeout=0.05) as upstream:
        with pytest.raises(UpstreamTimeout):
            await upstream.send("POST", CHAT, [], b"{}")
        await asyncio.wait_for(up.requests[0].gone.wait(), PATIENCE)


async def test_a_body_that_is_not_taken_is_a_timeout(
    connect: Connect, up: ScriptedUpstream
) -> None:
    up.read_gate = asyncio.Event()
    async with connect(up.url, read_timeout=0.1) as upstream:
        with pytest.raises(UpstreamTimeout):
            await upstream.send("POST", CHAT, [], b"x" * 50_000_000)


async def test_waiting_for_the_client_s_own_upload_is_no_timeout(
    connect: Connect, up: ScriptedUpstream
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"a"
        await asyncio.sleep(0.3)  # longer than the upstream may take
        yield b"b"

    async with connect(up.url, read_timeout=0.1) as upstream:
        reply = await upstream.send("POST", CHAT, [], slow())
        await reply.read()
        await reply.close()
    assert up.requests[0].body == b"ab"


async def test_connecting_too_slowly_is_a_timeout(connect: Connect) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = []
        for _ in range(4):  # fill the backlog: later connections get no answer
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex(address)
            waiting.append(client)
        async with connect(f"http://127.0.0.1:{address[1]}", connect_timeout=0.2) as upstream:
            with pytest.raises(UpstreamTimeout):
                await upstream.send("POST", CHAT, [], b"{}")
        for client in waiting:
            client.close()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="another-protocol"),
        pytest.param(b"HTTP/1.1 abc OK\r\n\r\n", id="status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", id="field"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", id="length"),
    ],
)
async def test_an_answer_that_is_not_http_is_broken(
    upstream: Upstream, up: ScriptedUpstream, head: bytes
) -> None:
    up.reply(Script(raw=head))
    with pytest.raises(UpstreamBroken):
        await upstream.send("POST", CHAT, [], b"{}")


@pytest.mark.parametrize(
    ("script", "arrives"),
    [
        pytest.param(
            sse([b"data: 1\n\n", b"data: 2\n\n"], cut=18), b"data: 1\n\ndata: 2\n\n", id="no-end"
        ),
        pytest.param(sse([b"data: 1\n\n"], cut=4), b"data", id="in-an-event"),
        pytest.param(sse([b"data: 1\n\n"], cut=0), b"", id="after-the-head"),
        pytest.param(Script(pieces=(b"half",), length=8, close=True), b"half", id="length"),
    ],
)
async def test_a_cut_answer_is_broken_after_all_that_arrived(
    upstream: Upstream, up: ScriptedUpstream, script: Script, arrives: bytes
) -> None:
    up.reply(script)
    got, failure = await read_until_failure(upstream)
    assert (got, type(failure)) == (arrives, UpstreamBroken)


async def test_a_chunk_without_a_size_is_never_a_clean_end(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n"))
    with pytest.raises(UpstreamBroken):  # at once or while reading, as the pieces happen to come
        _, failure = await read_until_failure(upstream)
        raise failure


async def test_a_reader_that_lags_behind_a_cut_still_gets_everything(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    gate = asyncio.Event()
    up.reply(sse([b"data: 1\n\n", gate, b"data: 2\n\n", b"data: 3\n\n"], cut=27))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    chunks = reply.chunks()
    got = await anext(chunks)
    gate.set()
    await up.wait_connections(0)  # the cut is there, and what came before it still unread
    await asyncio.sleep(0.05)  # long enough for a client that reads ahead to have seen it
    with pytest.raises(UpstreamBroken):
        async for chunk in chunks:
            got += chunk
    await reply.close()
    assert got == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"


async def test_an_answer_without_length_ends_where_the_connection_does(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(pieces=(b"all ", b"of it"), framing="close"))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    assert await reply.read() == b"all of it"
    await reply.close()


async def test_silence_in_an_answer_is_a_timeout(connect: Connect, up: ScriptedUpstream) -> None:
    up.reply(sse([b"data: 1\n\n"], hang="body"))
    async with connect(up.url, read_timeout=0.1) as upstream:
        got, failure = await read_until_failure(upstream)
        assert (got, type(failure)) == (b"data: 1\n\n", UpstreamTimeout)
        await asyncio.wait_for(up.requests[0].gone.wait(), PATIENCE)


async def test_a_broken_connection_is_not_used_again(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(sse([b"data: 1\n\n"], cut=9))
    await read_until_failure(upstream)
    reply = await upstream.send("POST", CHAT, [], b"{}")
    assert (reply.status, await reply.read()) == (
        200,
        b'{"object": "echo", "path": "/v1/chat", "bytes": 2}',
    )
    await reply.close()
    assert up.total_connections == 2


async def test_an_early_answer_to_an_upload_is_an_answer(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.answer_early = Script(
        raw=b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
    )
    reply = await upstream.send("POST", CHAT, [], b"x" * 30_000_000)
    assert (reply.status, await reply.read()) == (413, b"no")
    await reply.close()
