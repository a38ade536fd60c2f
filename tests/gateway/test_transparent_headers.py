"""Without a session headers are as they came, but for those that end at a proxy."""

from __future__ import annotations

import pytest

from tests.support.rig import CHAT, Rig
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, json_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")


OF_THE_CONNECTION = {b"host", b"content-length", b"connection", b"transfer-encoding", b"date"}


def travelling(headers: raw.Fields) -> raw.Fields:
    """The fields that are not about one connection, names in lower case (RFC 9110 5.1)."""
    fields = [(name.lower(), value) for name, value in headers]
    return [field for field in fields if field[0] not in OF_THE_CONNECTION]


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


async def test_request_headers_keep_order_values_and_duplicates(relayed: Rig) -> None:
    await raw.ask(relayed.port, "POST", CHAT, REQUEST_HEADERS, b"{}")
    sent = [(name.encode().lower(), value.encode("latin-1")) for name, value in REQUEST_HEADERS]
    assert travelling(relayed.up.requests[-1].headers) == sent


async def test_the_host_is_the_upstreams(relayed: Rig) -> None:
    await raw.ask(relayed.port, "GET", "/v1/models")
    assert relayed.up.requests[-1].header_list("host") == [f"127.0.0.1:{relayed.up.port}"]


async def test_hop_by_hop_headers_end_at_the_proxy(relayed: Rig) -> None:
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
    await raw.ask(relayed.port, "POST", "/v1/embeddings", hops, b"{}")
    assert travelling(relayed.up.requests[-1].headers) == [(b"x-bar", b"2")]


async def test_a_connection_header_cannot_remove_what_authorizes(relayed: Rig) -> None:
    """It removes its own fields on this hop, and takes nothing of what the proxy itself sets."""
    headers = [("Connection", "content-length, host"), ("Authorization", "Bearer k")]
    await raw.ask(relayed.port, "POST", "/v1/embeddings", headers, b"{}")
    asked = relayed.up.requests[-1]
    assert (asked.header("host"), asked.header("content-length")) == (
        f"127.0.0.1:{relayed.up.port}",
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


async def test_response_headers_keep_order_values_and_duplicates(relayed: Rig) -> None:
    relayed.up.always(Script(headers=RESPONSE_HEADERS, pieces=[b"{}"]))
    answer = await raw.ask(relayed.port, "GET", "/v1/models")
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in RESPONSE_HEADERS]
    got = [(name.lower(), value) for name, value in answer.headers]
    assert [field for field in got if field[0] != b"content-length"] == sent


async def test_an_answer_without_a_date_gets_one(relayed: Rig) -> None:
    answer = await raw.ask(relayed.port, "GET", "/v1/models")
    date = answer.get("date")
    assert date is not None and date.endswith(b" GMT")


async def test_hop_by_hop_headers_of_the_answer_end_at_the_proxy(relayed: Rig) -> None:
    hops = (
        ("Connection", "X-Foo"),
        ("X-Foo", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Trailer", "X-Sum"),
        ("Alt-Svc", 'h3=":443"'),
        ("X-Bar", "2"),
    )
    relayed.up.always(Script(headers=hops, pieces=[b"{}"]))
    answer = await raw.ask(relayed.port, "GET", "/v1/models")
    assert travelling(answer.headers) == [(b"x-bar", b"2")]


async def test_the_upstreams_cookies_are_not_replayed_to_others(relayed: Rig) -> None:
    relayed.up.reply(json_answer({}, headers=(("set-cookie", "user=ann; Path=/"),)))
    await raw.ask(relayed.port, "GET", "/v1/models")
    await raw.ask(relayed.port, "GET", "/v1/models")
    assert relayed.up.requests[-1].header("cookie") is None


@pytest.mark.parametrize("odd", ["a\x01b", "a\x7fb"])
async def test_an_answer_arrives_whose_header_has_what_none_may_have(
    relayed: Rig, odd: str
) -> None:
    relayed.up.reply(json_answer({}, headers=(("x-odd", odd),)))
    answer = await raw.ask(relayed.port, "GET", "/v1/models")
    assert (answer.status, answer.get("x-odd"), answer.body) == (200, b"a b", b"{}")


async def test_redirects_are_the_clients_to_follow(relayed: Rig) -> None:
    relayed.up.always(Script(status=307, headers=(("location", "http://127.0.0.1:1/v1/x"),)))
    answer = await raw.ask(relayed.port, "GET", "/v1/models")
    assert (answer.status, answer.get("location")) == (307, b"http://127.0.0.1:1/v1/x")
    assert len(relayed.up.requests) == 1


@pytest.mark.parametrize("prefix", ["/v1", "/s/talk/v1", "/openai/v1"])
@pytest.mark.parametrize("whole", [True, False], ids=["url", "path"])
@pytest.mark.parametrize("status", [201, 307])
async def test_a_redirect_within_the_upstream_leads_through_the_proxy(
    status: int, whole: bool, prefix: str, relayed: Rig
) -> None:
    site = f"http://127.0.0.1:{relayed.up.port}" if whole else ""
    location = f"{site}/v1/models?after=a"
    relayed.up.always(Script(status=status, headers=(("location", location),), pieces=[b"{}"]))
    answer = await raw.ask(relayed.port, "GET", f"{prefix}/models/")
    there = f"{prefix}/models?after=a".encode()
    assert (answer.status, answer.get("location")) == (status, there)


async def test_no_memory_header_is_added_without_a_session(relayed: Rig) -> None:
    for path in (CHAT, "/v1/models"):
        answer = await raw.ask(relayed.port, "POST", path, [], b'{"model":"m","messages":[]}')
        assert not [name for name, _ in answer.headers if name.startswith(b"x-memory-")]
        assert answer.get("server-timing") is None
