"""Offers to go on in another protocol, which are ignored (RFC 9110 7.8); in a real uvicorn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from tests.support.processes.server import Message, raw_exchange, serving

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

OFFERS = {
    "h2c": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n",
    "websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "unknown": b"upgrade: foo/1, bar\r\nConnection: keep-alive\r\nconnection: upgrade\r\n",
}
BODY = b"GET /within HTTP/1.1\r\nHost: b\r\n\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
LAST = b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def post(offer: bytes, rest: bytes = LENGTH) -> bytes:
    return b"POST /x HTTP/1.1\r\nHost: a\r\n" + offer + rest


@dataclass
class Served:
    """Remembers each request's path, body and headers."""

    port: int = 0
    seen: list[tuple[str, bytes]] = field(default_factory=list)
    headers: list[list[tuple[bytes, bytes]]] = field(default_factory=list)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message["body"]
            more = message["more_body"]
        self.seen.append((scope["path"], body))
        self.headers.append(scope["headers"])
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body"})


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    app = Served()
    async with serving(app) as app.port:
        yield app


@pytest.mark.parametrize("split", ["one-piece", "behind-the-head", "bytes"])
@pytest.mark.parametrize("rest", [LENGTH, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("offer", OFFERS.values(), ids=OFFERS)
async def test_a_request_with_an_offer_keeps_its_body(
    served: Served, offer: bytes, rest: bytes, split: str
) -> None:
    request = post(offer, rest)
    head = request.index(b"\r\n\r\n") + 4
    step = {"one-piece": len(request), "behind-the-head": head, "bytes": 1}[split]
    pieces = [request[at : at + step] for at in range(0, len(request), step)]
    answers = await raw_exchange(served.port, *pieces, LAST)
    assert answers.count(b"HTTP/1.1 200 ") == 2
    assert served.seen == [("/x", BODY), ("/last", b"")]


async def test_requests_with_offers_come_in_a_row(served: Served) -> None:
    bare = b"GET /bare HTTP/1.1\r\nHost: a\r\n" + OFFERS["h2c"] + b"\r\n"
    requests = [bare, post(OFFERS["h2c"]), post(b""), bare, post(OFFERS["unknown"], CHUNKED)]
    answers = await raw_exchange(served.port, b"".join([*requests, LAST]))
    assert answers.count(b"HTTP/1.1 200 ") == 6
    talk = [("/bare", b""), ("/x", BODY), ("/x", BODY), ("/bare", b""), ("/x", BODY)]
    assert served.seen == [*talk, ("/last", b"")]


async def test_the_application_hears_of_the_offer(served: Served) -> None:
    await raw_exchange(served.port, post(OFFERS["unknown"]), LAST)
    assert served.headers[0] == [
        (b"host", b"a"),
        (b"upgrade", b"foo/1, bar"),
        (b"connection", b"keep-alive"),
        (b"connection", b"upgrade"),
        (b"content-length", b"%d" % len(BODY)),
    ]


async def test_a_connection_that_is_to_end_ends_in_spite_of_an_offer(served: Served) -> None:
    offer = b"Connection: upgrade, close\r\nUpgrade: TLS/1.0\r\n"
    answers = await raw_exchange(served.port, post(offer))
    assert answers.count(b"HTTP/1.1 200 ") == 1
    assert served.seen == [("/x", BODY)]


@pytest.mark.parametrize("target", [b"a:443", b"/x"])
@pytest.mark.parametrize("offer", [b"", OFFERS["h2c"]], ids=["no-offer", "offer"])
async def test_there_is_no_tunnel(served: Served, target: bytes, offer: bytes) -> None:
    head = b"CONNECT " + target + b" HTTP/1.1\r\nHost: a\r\n" + offer + b"\r\n"
    answers = await raw_exchange(served.port, head + LAST)
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert answers.count(b"HTTP/1.1 ") == 1
    assert served.seen == []


async def test_who_begins_with_http_2_hears_that_it_is_not_spoken(served: Served) -> None:
    answer = await raw_exchange(served.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"not valid HTTP/1.1" in answer
