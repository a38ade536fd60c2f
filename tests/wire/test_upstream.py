"""What both clients of the upstream promise: requests and answers exactly as they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from proxy.wire.body import ClientGone
from proxy.wire.upstream import Reply, Upstream, UpstreamBroken
from tests.support.upstream import Script, ScriptedUpstream, json_answer, sse
from tests.wire.conftest import Connect

RawHeaders = list[tuple[bytes, bytes]]

OK = json_answer({})
CHAT = b"/chat"


async def ask(
    upstream: Upstream,
    method: str = "POST",
    target: bytes = CHAT,
    headers: RawHeaders | None = None,
    body: bytes | AsyncIterator[bytes] | None = b"{}",
    content_length: int | None = None,
) -> tuple[int, RawHeaders, bytes]:
    """Ask, read everything, close."""
    reply = await upstream.send(method, target, headers or [], body, content_length)
    try:
        return reply.status, reply.headers, await reply.read()
    finally:
        await reply.close()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


# --- requests -------------------------------------------------------------------------------------


async def test_request_headers_keep_order_case_and_duplicates(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    sent = [
        (b"X-B", b"1"),
        (b"authorization", b"Bearer k"),
        (b"x-dup", b"1"),
        (b"accept", b"*/*"),
        (b"x-dup", b"2"),
        (b"X-EMPTY", b""),
        (b"x-utf8", "é😀".encode()),
    ]
    await ask(upstream, headers=sent)
    got = up.requests[0].headers
    assert [field for field in got if field[0].lower() not in (b"host", b"content-length")] == sent


async def test_nothing_but_host_and_length_is_added(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    await ask(upstream)
    names = sorted(name.lower() for name, _ in up.requests[0].headers)
    assert names == [b"content-length", b"host"]
    assert up.requests[0].header("host") == f"127.0.0.1:{up.port}"


async def test_duplicates_spelled_differently_all_arrive(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    await ask(upstream, headers=[(b"X-A", b"1"), (b"x-a", b"2"), (b"X-A", b"3")])
    assert up.requests[0].header_list("x-a") == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        pytest.param(b"/a%2Fb%20c/d%C3%A9", b"/v1/a%2Fb%20c/d%C3%A9", id="escapes"),
        pytest.param(b"/files?a=%2F&b=+c&a=%20", b"/v1/files?a=%2F&b=+c&a=%20", id="query"),
        pytest.param(b"/a/../b/./c//d", b"/v1/a/../b/./c//d", id="dots"),
        pytest.param(b"/x?q=a?b/c|d'e", b"/v1/x?q=a?b/c|d'e", id="odd-characters"),
        pytest.param(b"/a%", b"/v1/a%", id="stray-percent"),
        pytest.param(b"/%e9%ff", b"/v1/%e9%ff", id="lower-case-escapes"),
        pytest.param(b"/a;b=c,d:e@f", b"/v1/a;b=c,d:e@f", id="delimiters"),
        pytest.param(b"/", b"/v1/", id="root"),
    ],
)
async def test_the_target_arrives_as_it_is(
    upstream: Upstream, up: ScriptedUpstream, target: bytes, arrives: bytes
) -> None:
    await ask(upstream, target=target)
    assert up.requests[0].target == arrives


async def test_the_base_url_keeps_its_path_and_query(
    connect: Connect, up: ScriptedUpstream
) -> None:
    async with connect(f"{up.origin}/openai/v1/?api-version=2024%2F10") as upstream:
        await ask(upstream, target=b"/chat?x=1")
        await ask(upstream, target=b"/chat")
    assert [request.target for request in up.requests] == [
        b"/openai/v1/chat?api-version=2024%2F10&x=1",
        b"/openai/v1/chat?api-version=2024%2F10",
    ]


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "OPTIONS"])
async def test_no_body_is_no_framing(upstream: Upstream, up: ScriptedUpstream, method: str) -> None:
    await ask(upstream, method, body=None)
    assert [name.lower() for name, _ in up.requests[0].headers] == [b"host"]


async def test_an_empty_body_says_so(upstream: Upstream, up: ScriptedUpstream) -> None:
    await ask(upstream, body=b"")
    assert up.requests[0].header_list("content-length") == ["0"]


@pytest.mark.parametrize("size", [10, 64 * 1024, 1_000_000], ids=["small", "edge", "large"])
async def test_bytes_travel_with_their_length(
    upstream: Upstream, up: ScriptedUpstream, size: int
) -> None:
    body = bytes(i % 251 for i in range(size))
    await ask(upstream, body=body)
    assert up.requests[0].body == body
    assert up.requests[0].header_list("content-length") == [str(size)]
    assert up.requests[0].header("transfer-encoding") is None


async def test_a_stream_of_known_length_is_not_chunked(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    await ask(upstream, body=pieces(b"ab", b"cde"), content_length=5)
    assert up.requests[0].body == b"abcde"
    assert up.requests[0].header_list("content-length") == ["5"]
    assert up.requests[0].header("transfer-encoding") is None


async def test_a_stream_of_unknown_length_is_chunked(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    await ask(upstream, body=pieces(b"ab", b"cde"))
    assert up.requests[0].body == b"abcde"
    assert up.requests[0].header("content-length") is None
    assert up.requests[0].header_list("transfer-encoding") == ["chunked"]


async def test_an_upload_waits_for_a_slow_upstream(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.read_gate = asyncio.Event()
    taken = 0
    piece = b"x" * 65536

    async def source() -> AsyncIterator[bytes]:
        nonlocal taken
        for _ in range(1024):
            taken += 1
            yield piece

    task = asyncio.create_task(ask(upstream, body=source()))
    before = -1
    while taken != before:  # until the buffers between us are full
        before = taken
        await asyncio.wait({task}, timeout=0.1)
    assert taken < 700
    up.read_gate.set()
    await task
    assert len(up.requests[0].body) == 1024 * len(piece)


async def test_a_client_that_leaves_while_uploading_is_not_the_upstream_s_fault(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"x"
        raise ClientGone

    with pytest.raises(ClientGone):
        await upstream.send("POST", CHAT, [], source())
    await up.wait_connections(0)
    assert up.requests == []


async def test_an_unopened_client_says_so(upstream: Upstream) -> None:
    await upstream.close()
    with pytest.raises(RuntimeError, match="open"):
        await upstream.send("GET", CHAT, [], None)


@pytest.mark.parametrize("target", [b"@evil.example/", b"chat", b""])
async def test_a_target_never_reaches_into_the_host(upstream: Upstream, target: bytes) -> None:
    with pytest.raises(ValueError, match="slash"):
        await upstream.send("GET", target, [], None)


# --- answers --------------------------------------------------------------------------------------


async def test_answer_headers_keep_order_case_and_duplicates(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    sent: tuple[tuple[bytes, bytes], ...] = (
        (b"X-Request-ID", b"r1"),
        (b"Set-Cookie", b"a=1"),
        (b"content-type", b"application/json"),
        (b"set-cookie", b"b=2; Path=/"),
        (b"X-Latin", b"caf\xe9"),
        (b"X-Empty", b""),
    )
    up.reply(Script(headers=sent, pieces=(b"{}",)))
    _, headers, _ = await ask(upstream)
    assert headers[:-1] == list(sent)
    assert headers[-1] == (b"Content-Length", b"2")


async def test_cookies_of_one_answer_are_not_sent_with_the_next_request(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(json_answer({}, headers=(("Set-Cookie", "sid=1; Path=/"),)))
    await ask(upstream)
    await ask(upstream, headers=[(b"cookie", b"mine=2")])
    assert up.requests[1].header_list("cookie") == ["mine=2"]


@pytest.mark.parametrize("status", [200, 201, 400, 401, 404, 418, 429, 500, 503, 599])
async def test_any_status_is_an_answer(
    upstream: Upstream, up: ScriptedUpstream, status: int
) -> None:
    up.reply(json_answer({"error": "x"}, status, headers=(("Retry-After", "7"),)))
    got, headers, body = await ask(upstream)
    assert (got, body) == (status, b'{"error": "x"}')
    assert (b"Retry-After", b"7") in headers


async def test_redirects_are_passed_on_and_not_followed(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(json_answer({}, 307, headers=(("Location", "/elsewhere"),)))
    status, _, _ = await ask(upstream, "GET", body=None)
    assert (status, len(up.requests)) == (307, 1)


async def test_encoded_answers_stay_encoded(upstream: Upstream, up: ScriptedUpstream) -> None:
    up.reply(Script(headers=(("Content-Encoding", "gzip"),), pieces=(b"\x1f\x8bnot really",)))
    _, headers, body = await ask(upstream)
    assert (b"Content-Encoding", b"gzip") in headers
    assert body == b"\x1f\x8bnot really"


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_end_at_once(
    upstream: Upstream, up: ScriptedUpstream, status: int
) -> None:
    up.reply(Script(status=status, headers=(("ETag", "x"),)))
    assert (await ask(upstream))[0] == status
    assert (await ask(upstream))[0] == 200
    assert up.total_connections == 1


async def test_the_answer_to_head_has_a_length_and_no_body(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    up.reply(Script(pieces=(b"x" * 10,)))
    status, headers, body = await ask(upstream, "HEAD", body=None)
    assert (status, body) == (200, b"")
    assert (b"Content-Length", b"10") in headers
    await ask(upstream)
    assert up.total_connections == 1


async def test_interim_answers_are_not_the_answer(upstream: Upstream, up: ScriptedUpstream) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    up.reply(Script(raw=interim + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    status, headers, body = await ask(upstream)
    assert (status, headers, body) == (200, [(b"Content-Length", b"2")], b"ok")


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_megabyte_arrives_whole(
    upstream: Upstream, up: ScriptedUpstream, framing: str
) -> None:
    parts = [bytes([i % 256]) * 9973 for i in range(110)]
    up.reply(Script(pieces=parts, framing=framing))  # type: ignore[arg-type]
    _, _, body = await ask(upstream)
    assert body == b"".join(parts)


async def test_large_headers_are_taken(upstream: Upstream, up: ScriptedUpstream) -> None:
    many = tuple((f"x-{i}", "v" * 50) for i in range(300))
    up.reply(Script(headers=(("x-large", "v" * 65536),)), Script(headers=many))
    assert (await ask(upstream))[1][0] == (b"x-large", b"v" * 65536)
    assert len((await ask(upstream))[1]) == 301


async def test_each_piece_is_there_before_the_next_is_sent(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    up.reply(sse([gates[0], b"data: 1\n\n", gates[1], b"data: 2\n\n"]))
    reply = await upstream.send("POST", CHAT, [], b"{}")  # the head comes before any piece
    chunks = reply.chunks()
    gates[0].set()
    assert await anext(chunks) == b"data: 1\n\n"
    gates[1].set()
    assert await anext(chunks) == b"data: 2\n\n"
    assert await anext(chunks, None) is None
    await reply.close()


async def test_a_slow_reader_slows_the_upstream(upstream: Upstream, up: ScriptedUpstream) -> None:
    piece = b"x" * 65536
    up.reply(Script(pieces=[piece] * 1024, framing="chunked"))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    request = await up.wait_for()
    before = -1
    while request.sent != before:  # until the buffers between us are full
        before = request.sent
        await asyncio.wait({asyncio.create_task(asyncio.Event().wait())}, timeout=0.1)
    assert request.sent < 700 * len(piece)
    assert len(await reply.read(limit=1 << 30)) == 1024 * len(piece)
    await reply.close()


async def test_reading_whole_is_bounded(upstream: Upstream, up: ScriptedUpstream) -> None:
    up.reply(Script(pieces=(b"x" * 11,)))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    with pytest.raises(UpstreamBroken, match="10 bytes"):
        await reply.read(limit=10)
    await reply.close()


# --- connections ----------------------------------------------------------------------------------


async def test_a_connection_is_used_again(upstream: Upstream, up: ScriptedUpstream) -> None:
    for _ in range(3):
        await ask(upstream)
    assert {request.connection for request in up.requests} == {1}


async def test_many_streams_run_at_once_and_their_connections_are_kept(
    upstream: Upstream, up: ScriptedUpstream
) -> None:
    gate = asyncio.Event()
    up.always(sse([b"data: 1\n\n", gate, b"data: 2\n\n"]))
    replies: Sequence[Reply] = await asyncio.gather(
        *(upstream.send("POST", CHAT, [], b"{}") for _ in range(120))
    )
    assert (upstream.exchanges, up.open_connections) == (120, 120)
    assert "120" in repr(upstream)
    gate.set()
    for reply in replies:
        assert await reply.read() == b"data: 1\n\ndata: 2\n\n"
        await reply.close()
    await asyncio.gather(*(ask(upstream) for _ in range(120)))
    assert up.total_connections == 120


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
    await asyncio.wait_for(up.requests[0].gone.wait(), 5)
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
    await asyncio.wait_for(request.gone.wait(), 5)
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
    await asyncio.wait_for(request.gone.wait(), 5)
    await up.wait_connections(0)
