"""What the relay's own client promises beyond the seam: limits, and each request sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.wire.aiohttp_upstream import AiohttpUpstream
from proxy.wire.direct import connection as connections
from proxy.wire.direct import upstream as upstreams
from proxy.wire.direct.upstream import DirectUpstream
from proxy.wire.failures import UpstreamBroken, UpstreamUnreachable
from proxy.wire.origin import UpstreamOptions
from proxy.wire.upstream import open_upstream
from tests.support.talk.asking import CHAT, ask, read_until_failure
from tests.support.upstream.scripted import DROPPED, Script, ScriptedUpstream, json_answer, sse
from tests.support.waiting import standstill

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
async def direct(up: ScriptedUpstream) -> AsyncIterator[DirectUpstream]:
    upstream = DirectUpstream(UpstreamOptions(up.url, read_timeout=10))
    await upstream.open()
    yield upstream
    await upstream.close()
    assert upstream.exchanges == 0


def test_a_proxy_on_the_way_is_left_to_aiohttp() -> None:
    proxied = UpstreamOptions("http://a.example/v1", proxy="http://proxy.example")
    assert isinstance(open_upstream("direct", proxied), AiohttpUpstream)
    assert isinstance(open_upstream("direct", UpstreamOptions("http://a.example")), DirectUpstream)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1025 + b"\r\n", id="many"),
        pytest.param(b"HTTP/1.1 200 OK\r\na: " + b"b" * 600_000 + b"\r\n\r\n", id="large"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" * 30_000, id="interim"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", id="switching"),
        pytest.param(
            b"HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", id="upgrade"
        ),
    ],
)
async def test_a_head_that_no_answer_has_is_broken(
    direct: DirectUpstream, up: ScriptedUpstream, head: bytes
) -> None:
    up.reply(Script(raw=head))
    with pytest.raises(UpstreamBroken):
        await ask(direct)


async def test_little_is_held_of_an_answer_that_nobody_reads(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(pieces=[b"x" * 65536] * 1024, framing="chunked"))
    reply = await direct.send("POST", CHAT, [], b"{}")
    request = await up.wait_for()
    await standstill(lambda: request.sent)
    assert max([len(chunk) async for chunk in reply.chunks()]) <= 96 * 1024
    await reply.close()


@pytest.mark.parametrize(
    "endless",
    [
        pytest.param(b"1;" + b"x" * 600_000, id="extension"),
        pytest.param(b"0\r\n" + b"a: b\r\n" * 100_000, id="trailers"),
    ],
)
async def test_what_is_no_body_does_not_go_on_for_ever(
    direct: DirectUpstream, up: ScriptedUpstream, endless: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    up.reply(Script(raw=head + b"2\r\nab\r\n" + endless))
    assert (await read_until_failure(direct))[0] == b"ab"


async def test_chunks_overrule_a_length_and_end_the_connection(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    length = (("Content-Length", "2"),)
    up.reply(Script(headers=length, pieces=(b"ab", b"cd"), framing="chunked"))
    assert (await ask(direct))[2] == b"abcd"
    await ask(direct)
    assert up.total_connections == 2


async def test_trailers_are_no_headers_and_end_an_answer(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    up.reply(Script(raw=head + b"2\r\nab\r\n0\r\nX-After: 1\r\n\r\n"))
    _, headers, body = await ask(direct)
    assert (headers, body) == ([(b"Transfer-Encoding", b"chunked")], b"ab")


@pytest.mark.parametrize(
    "behind",
    [OK, b"junk", b"HTTP/1.1 200 OK\r\nMore: ", b"H"],
    ids=["answer", "junk", "beginning", "letter"],
)
async def test_what_comes_behind_an_answer_is_nobody_s(
    direct: DirectUpstream, up: ScriptedUpstream, behind: bytes
) -> None:
    up.reply(Script(raw=OK + behind))
    assert await ask(direct) == (200, [(b"Content-Length", b"2")], b"ok")
    up.reply(json_answer({"next": 1}))
    status, headers, body = await ask(direct)
    assert (status, body) == (200, b'{"next": 1}')
    assert not any(name == b"More" for name, _ in headers)
    assert up.total_connections == 2


async def test_a_body_behind_the_answer_to_head_is_nobody_s(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(raw=OK))
    assert (await ask(direct, "HEAD", body=None))[2] == b""
    assert (await ask(direct))[0] == 200
    assert up.total_connections == 2


async def test_an_answer_by_http_1_0_ends_with_its_connection(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(raw=b"HTTP/1.0 200 OK\r\n\r\nold"))
    assert (await ask(direct))[2] == b"old"


async def test_what_can_be_repeated_is_asked_again_where_a_kept_connection_was_closed(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.reply(json_answer({}), DROPPED, json_answer({"second": True}))
    await ask(direct)
    assert (await ask(direct, "GET", body=None))[2] == b'{"second": true}'
    assert [request.connection for request in up.requests] == [1, 1, 2]


async def test_what_can_be_repeated_is_asked_once_on_a_new_connection(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.always(DROPPED)
    with pytest.raises(UpstreamUnreachable):
        await ask(direct, "GET", body=None)
    assert len(up.requests) == 1


async def test_a_connection_that_nobody_needs_is_closed(
    direct: DirectUpstream, up: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstreams, "KEEP_ALIVE_SECONDS", 0.05)
    await ask(direct)
    assert up.open_connections == 1
    await up.wait_connections(0)


async def test_closing_closes_what_is_under_way(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    up.reply(sse([b"data: 1\n\n"], hang="body"))
    reply = await direct.send("POST", CHAT, [], b"{}")
    await direct.close()
    await up.wait_connections(0)
    await reply.close()


@pytest.mark.parametrize(
    "field", [(b"a", b"1\r\nb: 2"), (b"a\nb", b"1"), (b"a", b"\0"), (b"a", b"1\r")]
)
async def test_one_header_cannot_be_two(
    direct: DirectUpstream, up: ScriptedUpstream, field: tuple[bytes, bytes]
) -> None:
    with pytest.raises(ValueError, match="line break"):
        await ask(direct, headers=[field])
    assert up.total_connections == 0


@pytest.mark.parametrize("size", [1, 3])
async def test_a_body_of_another_length_than_declared_is_not_sent(
    direct: DirectUpstream, up: ScriptedUpstream, size: int
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x" * size

    with pytest.raises(ValueError, match="length"):
        await ask(direct, body=body(), content_length=2)
    await up.wait_connections(0)
    assert up.requests == []


async def test_an_answer_before_the_end_of_the_request_closes_the_connection(
    direct: DirectUpstream, up: ScriptedUpstream
) -> None:
    waiting = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        await waiting.wait()

    up.answer_early = Script(raw=OK)
    assert (await ask(direct, body=body()))[2] == b"ok"
    await up.wait_connections(0)


async def test_the_name_of_many_connections_is_looked_up_once(
    up: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = DirectUpstream(UpstreamOptions(f"http://localhost:{up.port}"))
    await upstream.open()
    loop, asked = asyncio.get_running_loop(), 0
    look_up = loop.getaddrinfo

    async def counted(*args: object, **kwargs: object) -> object:
        nonlocal asked
        asked += 1
        return await look_up(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "getaddrinfo", counted)
    await asyncio.gather(*(ask(upstream) for _ in range(5)))
    assert (asked, up.total_connections) == (1, 5)
    await upstream.close()


def test_the_limits_are_above_those_of_servers() -> None:
    assert connections.MAX_HEAD_BYTES > 4 * 64 * 1024
