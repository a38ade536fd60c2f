"""Without a session the proxy is not there: bodies, headers, errors, pace, all as they came."""

from __future__ import annotations

import asyncio
import gzip
import json
import random

import pytest

from tests.support import raw
from tests.support.answers import Script, chat_stream, error_answer, json_answer, sse
from tests.support.rig import CHAT, Rig
from tests.support.waiting import standstill
from tests.support.words import messages

pytestmark = pytest.mark.asyncio(loop_scope="session")

BINARY = random.Random(1).randbytes(100_000)
MULTIPART = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    + BINARY
    + b"\r\n--b--\r\n"
)
WEIRD = b'{ "z" : 1e999,\r\n\t"messages":[ {"content":"\\ud83d", "role" : "user"}],"a":1,"a":2 }\n'

OF_THE_CONNECTION = {b"host", b"content-length", b"connection", b"transfer-encoding", b"date"}


def travelling(headers: raw.Fields) -> raw.Fields:
    """The fields that are not about one connection, names in lower case (RFC 9110 5.1)."""
    fields = [(name.lower(), value) for name, value in headers]
    return [field for field in fields if field[0] not in OF_THE_CONNECTION]


@pytest.fixture
def one(one: Rig) -> Rig:
    """The upstream takes anything: what comes is what the test is about."""
    one.up.strict = False
    return one


# Bodies


@pytest.mark.parametrize(
    ("method", "path", "kind", "body"),
    [
        pytest.param("POST", CHAT, "application/json", WEIRD, id="chat"),
        pytest.param("POST", "/v1/embeddings", "application/json", WEIRD, id="json"),
        pytest.param(
            "POST", "/v1/audio/transcriptions", "multipart/form-data; boundary=b", MULTIPART,
            id="multipart",
        ),
        pytest.param("POST", "/v1/uploads/u/parts", "application/octet-stream", BINARY, id="bin"),
        pytest.param("POST", CHAT, "application/json", gzip.compress(WEIRD), id="compressed"),
        pytest.param("PUT", "/v1/x", "text/plain", b"x", id="put"),
        pytest.param("PATCH", "/v1/x", "text/plain", b"x", id="patch"),
        pytest.param("DELETE", "/v1/files/f", "text/plain", b"x", id="delete-with-a-body"),
        pytest.param("POST", "/v1/x/cancel", "text/plain", b"", id="empty"),
    ],
)  # fmt: skip
async def test_a_body_arrives_as_it_was_sent(
    one: Rig, method: str, path: str, kind: str, body: bytes
) -> None:
    reply = random.Random(2).randbytes(5000)
    one.up.always(Script(headers=(("content-type", "audio/mpeg"),), pieces=[reply]))
    answer = await raw.ask(one.port, method, path, [("Content-Type", kind)], body)
    assert (answer.status, answer.body) == (200, reply)
    asked = one.up.requests[-1]
    assert (asked.method, asked.path, asked.body) == (method, path, body)
    assert asked.header_list("content-length") == [str(len(body))]
    assert asked.header_list("transfer-encoding") == []


async def test_a_chunked_body_arrives_as_it_was_sent(one: Rig) -> None:
    pieces = [BINARY[at : at + 7000] for at in range(0, len(BINARY), 7000)]
    head = raw.request("POST", "/v1/files", [("Transfer-Encoding", "chunked")])
    async with raw.line(one.port) as line:
        await line.send(head + raw.chunked(pieces))
        assert (await line.answer()).status == 200
    asked = one.up.requests[-1]
    assert asked.body == BINARY
    framing = asked.header_list("content-length") + asked.header_list("transfer-encoding")
    assert framing in (["chunked"], [str(len(BINARY))])  # the latter if it came in one piece


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "POST"])
async def test_a_request_without_a_body_gets_none_and_no_framing(one: Rig, method: str) -> None:
    answer = await raw.ask(one.port, method, "/v1/models")
    assert answer.status == 200
    asked = one.up.requests[-1]
    assert (asked.method, asked.body) == (method, b"")
    assert asked.header("transfer-encoding") is None
    assert asked.header("content-length") is None


async def test_an_answer_to_head_keeps_its_length_and_has_no_body(one: Rig) -> None:
    one.up.always(Script(pieces=[b"x" * 321]))
    answer = await raw.ask(one.port, "HEAD", "/v1/models")
    assert (answer.get("content-length"), answer.body) == (b"321", b"")


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_pass(one: Rig, status: int) -> None:
    one.up.always(Script(status=status, headers=(("etag", '"x"'),)))
    answer = await raw.ask(one.port, "GET", "/v1/files/f")
    assert (answer.status, answer.get("etag"), answer.body) == (status, b'"x"', b"")
    assert answer.get("transfer-encoding") is None
    assert (await raw.ask(one.port, "GET", "/v1/files/f")).status == status


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_a_binary_answer_arrives_as_it_was_sent(one: Rig, framing: str) -> None:
    pieces = [BINARY[:10], BINARY[10:70_000], BINARY[70_000:]]
    kind = (("content-type", "audio/mpeg"),)
    one.up.always(Script(headers=kind, pieces=pieces, framing=framing))  # type: ignore[arg-type]
    answer = await raw.ask(one.port, "POST", "/v1/audio/speech", [], b"{}")
    assert (answer.body, answer.whole) == (BINARY, True)
    assert answer.get("content-length") == (b"100000" if framing == "length" else None)


async def test_a_compressed_answer_stays_compressed(one: Rig) -> None:
    packed = gzip.compress(b'{"x": 1}')
    one.up.always(Script(headers=(("content-encoding", "gzip"),), pieces=[packed]))
    answer = await raw.ask(one.port, "POST", CHAT, [("Accept-Encoding", "gzip, br")], b"{}")
    assert (answer.body, answer.get("content-encoding")) == (packed, b"gzip")
    assert one.up.requests[-1].header("accept-encoding") == "gzip, br"


# Targets


@pytest.mark.parametrize(
    ("sent", "target"),
    [
        pytest.param("/v1/models", "/v1/models", id="plain"),
        pytest.param("/v1/models?a=1&a=2&b=%20+", "/v1/models?a=1&a=2&b=%20+", id="query"),
        pytest.param("/v1/models/org%2Fname", "/v1/models/org%2Fname", id="encoded-slash"),
        pytest.param("/v1/x%20y/%C3%A9", "/v1/x%20y/%C3%A9", id="encoded-text"),
        pytest.param("/v1//x/../y/", "/v1//x/../y/", id="nothing-is-normalised"),
        pytest.param("/v1/x?", "/v1/x", id="an-empty-query-is-none"),
        pytest.param("/v1/x?y=/v1/z?", "/v1/x?y=/v1/z?", id="question-mark-in-the-query"),
        pytest.param("/openai/v1/models", "/v1/models", id="azure-v1"),
        pytest.param(
            "/openai/deployments/d/chat/completions?api-version=1",
            "/v1/deployments/d/chat/completions?api-version=1",
            id="azure-deployment",
        ),
        pytest.param("/s/me/v1/models?x=1", "/v1/models?x=1", id="session-in-the-path"),
    ],
)
async def test_path_and_query_arrive_as_they_were_sent(one: Rig, sent: str, target: str) -> None:
    assert (await raw.ask(one.port, "GET", sent)).status == 200
    assert one.up.requests[-1].target == target.encode()


# Headers


REQUEST_HEADERS = [
    ("X-Zebra", "1"),
    ("Authorization", "Bearer sk-live"),
    ("OpenAI-Organization", "org-1"),
    ("X-Twice", "a"),
    ("User-Agent", "AsyncOpenAI/Python 2.0"),
    ("X-Twice", "b, c"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("X-Stainless-Retry-Count", "0"),
    ("Cookie", "a=1; b=2"),
    ("X-Empty", ""),
    ("Content-Type", "application/json"),
    ("Content-MD5", "x"),
    ("If-None-Match", '"e"'),
    ("X-Utf-8", "caf\xc3\xa9"),
    ("Idempotency-Key", "k"),
    ("X-Forwarded-For", "10.0.0.1"),
]


async def test_request_headers_keep_order_values_and_duplicates(one: Rig) -> None:
    await raw.ask(one.port, "POST", CHAT, REQUEST_HEADERS, b"{}")
    sent = [(name.encode().lower(), value.encode("latin-1")) for name, value in REQUEST_HEADERS]
    assert travelling(one.up.requests[-1].headers) == sent


async def test_the_host_is_the_upstreams(one: Rig) -> None:
    await raw.ask(one.port, "GET", "/v1/models")
    assert one.up.requests[-1].header_list("host") == [f"127.0.0.1:{one.up.port}"]


async def test_hop_by_hop_headers_end_at_the_proxy(one: Rig) -> None:
    hops = [
        ("Connection", "keep-alive, X-Foo"),
        ("X-Foo", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Proxy-Authorization", "Basic eDp5"),
        ("TE", "trailers"),
        ("Trailer", "X-Foo"),
        ("X-Bar", "2"),
        ("Connection", "x-baz"),
        ("X-Baz", "3"),
    ]
    await raw.ask(one.port, "POST", "/v1/embeddings", hops, b"{}")
    assert travelling(one.up.requests[-1].headers) == [(b"x-bar", b"2")]


async def test_a_connection_header_cannot_remove_what_authorizes(one: Rig) -> None:
    """It removes its own fields on this hop, and takes nothing of what the proxy itself sets."""
    headers = [("Connection", "content-length, host"), ("Authorization", "Bearer k")]
    await raw.ask(one.port, "POST", "/v1/embeddings", headers, b"{}")
    asked = one.up.requests[-1]
    assert (asked.header("host"), asked.header("content-length")) == (
        f"127.0.0.1:{one.up.port}",
        "2",
    )


RESPONSE_HEADERS = (
    ("x-zebra", "1"),
    ("Content-Type", "application/json; charset=utf-8"),
    ("Set-Cookie", "a=1; Path=/"),
    ("openai-processing-ms", "12"),
    ("Set-Cookie", "b=2, with comma"),
    ("x-empty", ""),
    ("Server", "cloudflare"),
    ("Date", "Tue, 15 Nov 1994 08:12:31 GMT"),
    ("X-Latin", "caf\xe9"),
    ("Vary", "Origin"),
    ("Cache-Control", "private"),
)


async def test_response_headers_keep_order_values_and_duplicates(one: Rig) -> None:
    one.up.always(Script(headers=RESPONSE_HEADERS, pieces=[b"{}"]))
    answer = await raw.ask(one.port, "GET", "/v1/models")
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in RESPONSE_HEADERS]
    got = [(name.lower(), value) for name, value in answer.headers]
    assert [field for field in got if field[0] != b"content-length"] == sent


async def test_an_answer_without_a_date_gets_one(one: Rig) -> None:
    answer = await raw.ask(one.port, "GET", "/v1/models")
    date = answer.get("date")
    assert date is not None and date.endswith(b" GMT")


async def test_hop_by_hop_headers_of_the_answer_end_at_the_proxy(one: Rig) -> None:
    hops = (
        ("Connection", "X-Foo"),
        ("X-Foo", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Trailer", "X-Sum"),
        ("Alt-Svc", 'h3=":443"'),
        ("X-Bar", "2"),
    )
    one.up.always(Script(headers=hops, pieces=[b"{}"]))
    answer = await raw.ask(one.port, "GET", "/v1/models")
    assert travelling(answer.headers) == [(b"x-bar", b"2")]


async def test_the_upstreams_cookies_are_not_replayed_to_others(one: Rig) -> None:
    one.up.reply(json_answer({}, headers=(("set-cookie", "user=ann; Path=/"),)))
    await raw.ask(one.port, "GET", "/v1/models")
    await raw.ask(one.port, "GET", "/v1/models")
    assert one.up.requests[-1].header("cookie") is None


async def test_redirects_are_the_clients_to_follow(one: Rig) -> None:
    one.up.always(Script(status=307, headers=(("location", "http://127.0.0.1:1/v1/x"),)))
    answer = await raw.ask(one.port, "GET", "/v1/models")
    assert (answer.status, answer.get("location")) == (307, b"http://127.0.0.1:1/v1/x")
    assert len(one.up.requests) == 1


async def test_no_memory_header_is_added_without_a_session(one: Rig) -> None:
    for path in (CHAT, "/v1/models"):
        answer = await raw.ask(one.port, "POST", path, [], b'{"model":"m","messages":[]}')
        assert not [name for name, _ in answer.headers if name.startswith(b"x-memory-")]
        assert answer.get("server-timing") is None


# Errors


@pytest.mark.parametrize("session", [None, "s"], ids=["no-session", "session"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 529])
async def test_upstream_errors_pass_verbatim(one: Rig, status: int, session: str | None) -> None:
    extra = (
        ("content-type", "application/json"),
        ("retry-after", "7"),
        ("retry-after-ms", "6500"),
        ("x-request-id", "req_1"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-should-retry", "false"),
        ("www-authenticate", "Bearer"),
    )
    body = error_answer(status, "as the upstream says", "its_code").pieces[0]
    assert isinstance(body, bytes)
    one.up.reply(Script(status=status, headers=extra, pieces=[body + b" \n"]))
    sent = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    headers = [("X-Session-Id", session)] if session else []
    answer = await raw.ask(one.port, "POST", CHAT, headers, sent)
    assert (answer.status, answer.body) == (status, body + b" \n")
    got = {(name, value) for name, value in answer.headers}
    assert {(name.encode(), value.encode()) for name, value in extra} <= got
    assert one.up.requests[-1].body == sent


# Pace


@pytest.mark.parametrize("path", [CHAT, "/v1/responses", "/v1/audio/speech"])
async def test_each_piece_passes_before_the_next_one_exists(one: Rig, path: str) -> None:
    second, end = asyncio.Event(), asyncio.Event()
    first, *rest = chat_stream(["a", "b"])
    one.up.always(sse([first, second, rest[0], end, *rest[1:]]))
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", path, [], b"{}"))
        assert (await line.head())[0] == 200
        chunks = line.chunks()
        assert await anext(chunks) == first
        second.set()
        assert await anext(chunks) == rest[0]
        end.set()
        assert b"".join([chunk async for chunk in chunks]) == b"".join(rest[1:])


async def test_headers_pass_before_the_first_byte_of_the_body(one: Rig) -> None:
    hold = asyncio.Event()
    one.up.always(sse([hold, b"data: [DONE]\n\n"]))
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        status, headers = await line.head()
        assert (status, dict(headers)[b"content-type"]) == (
            200,
            b"text/event-stream; charset=utf-8",
        )
        hold.set()
        assert [chunk async for chunk in line.chunks()] == [b"data: [DONE]\n\n"]


async def test_a_large_upload_streams_and_waits_for_a_slow_upstream(one: Rig) -> None:
    size, sent = 20_000_000, 0
    one.up.read_gate = asyncio.Event()
    block = b"x" * 50_000
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", "/v1/files", [("Content-Length", str(size))]))

        async def upload() -> None:
            nonlocal sent
            while sent < size:
                await line.send(block)
                sent += len(block)

        uploading = asyncio.create_task(upload())
        stuck = await standstill(lambda: sent)
        assert 0 < stuck < size
        one.up.read_gate.set()
        assert (await line.answer()).status == 200
        await uploading
    one.up.read_gate = None
    asked = one.up.requests[-1]
    assert (len(asked.body), asked.header("content-length")) == (size, str(size))


async def test_a_slow_reader_holds_back_a_large_answer(one: Rig) -> None:
    piece = b"y" * 50_000
    one.up.always(Script(pieces=[piece] * 400))
    async with raw.line(one.port) as line:
        await line.send(raw.request("GET", "/v1/files/f/content"))
        assert (await line.head())[0] == 200
        asked = await one.up.wait_for(1)
        assert await standstill(lambda: asked.sent) < 20_000_000
        assert sum([len(chunk) async for chunk in line.chunks()]) == 20_000_000


async def test_a_client_that_leaves_takes_its_upstream_request_with_it(one: Rig) -> None:
    one.up.always(sse(chat_stream(["a"])[:1], hang="body"))
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        await line.head()
    asked = await one.up.wait_for(1)
    async with asyncio.timeout(5):
        await asked.gone.wait()


async def test_a_client_that_leaves_before_the_answer_takes_its_request_with_it(one: Rig) -> None:
    one.up.always(Script(hang="headers"))
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", "/v1/responses", [], b"{}"))
        asked = await one.up.wait_for(1)
    async with asyncio.timeout(5):
        await asked.gone.wait()


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_an_answer_that_breaks_off_is_seen_to_break_off(one: Rig, framing: str) -> None:
    kind = (("content-type", "text/event-stream"),)
    broken = Script(headers=kind, pieces=[b"a" * 50, b"b" * 50], framing=framing, cut=70)  # type: ignore[arg-type]
    one.up.always(broken)
    answer = await raw.ask(one.port, "POST", "/v1/responses", [], b"{}")
    assert (answer.status, answer.whole) == (200, False)
    assert one.proxy.server.started


async def test_an_unreachable_upstream_is_said_in_openais_shape(one: Rig) -> None:
    one.up.always(Script(drop=True))
    answer = await raw.ask(one.port, "POST", "/v1/responses", [], b"{}")
    assert (answer.status, answer.get("content-type")) == (502, b"application/json")
    assert json.loads(answer.body)["error"]["code"] == "upstream_unreachable"
