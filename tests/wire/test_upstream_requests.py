"""What both clients of the upstream promise of requests: they arrive exactly as they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.wire.body import ClientGone
from proxy.wire.upstream import Upstream
from tests.support.talk.asking import CHAT, ask
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import standstill
from tests.wire.conftest import Connect


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


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
    assert await standstill(lambda: taken) < 700  # the buffers between us hold the rest
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
