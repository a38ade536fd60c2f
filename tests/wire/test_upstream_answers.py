"""What both clients of the upstream promise of answers: they come exactly as they are."""

from __future__ import annotations

import asyncio

import pytest

from proxy.wire.failures import UpstreamBroken
from proxy.wire.upstream import Upstream
from tests.support.talk.asking import CHAT, ask
from tests.support.upstream.scripted import Script, ScriptedUpstream, json_answer, sse
from tests.support.waiting import standstill


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
    sent = await standstill(lambda: request.sent)
    assert sent < 700 * len(piece)  # the buffers between us hold the rest
    assert len(await reply.read(limit=1 << 30)) == 1024 * len(piece)
    await reply.close()


async def test_reading_whole_is_bounded(upstream: Upstream, up: ScriptedUpstream) -> None:
    up.reply(Script(pieces=(b"x" * 11,)))
    reply = await upstream.send("POST", CHAT, [], b"{}")
    with pytest.raises(UpstreamBroken, match="10 bytes"):
        await reply.read(limit=10)
    await reply.close()
