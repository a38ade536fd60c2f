"""A head that is wrong is refused clearly, and nothing that was said is lost."""

from __future__ import annotations

import json

import pytest

from tests.support.rig import CHAT, Rig
from tests.support.talk.harm import began, nothing_was_lost, refusal
from tests.support.talk.words import messages
from tests.support.upstream import raw

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = json.dumps({"model": "m", "messages": messages("u2")}).encode()


@pytest.mark.parametrize(
    ("name", "value", "status", "code"),
    [
        pytest.param("X-Session-Id", "", 400, "invalid_session_id", id="empty-session"),
        pytest.param("X-Session-Id", "a b", 400, "invalid_session_id", id="session-with-a-space"),
        pytest.param("X-Session-Id", "..", 400, "invalid_session_id", id="session-of-dots"),
        pytest.param("X-Session-Id", "caf\xe9", 400, "invalid_session_id", id="session-not-ascii"),
        pytest.param("X-Session-Id", "x" * 10_000, 400, "invalid_session_id", id="session-long"),
        pytest.param("X-User-Id", "a b", 400, "invalid_user_id", id="user"),
        pytest.param("X-Memory-Mode", "sometimes", 400, "invalid_header", id="mode"),
        pytest.param("X-Memory-Profile", "none-such", 400, "unknown_profile", id="profile"),
        pytest.param("X-Memory-Profile", "../brief", 400, "unknown_profile", id="profile-a-path"),
        pytest.param("X-Memory-Profile", "\xff\xfe", 400, "unknown_profile", id="profile-bytes"),
        pytest.param("X-Memory-Max-Tokens", "lots", 400, "invalid_header", id="max-tokens"),
        pytest.param("X-Memory-History", "maybe", 400, "invalid_header", id="history"),
        pytest.param("X-Memory-Rewind", "-1", 400, "invalid_header", id="rewind"),
        pytest.param("Idempotency-Key", "\xff", 400, "invalid_header", id="idempotency-key"),
        pytest.param("Api-Key", "another", 400, "invalid_header", id="two-keys"),
        pytest.param("X-Large", "x" * 70_000, 431, "invalid_header", id="a-large-header"),
        pytest.param("X-Null", "a\x00b", 400, "invalid_header", id="a-null-in-a-value"),
        pytest.param("X\xe9", "1", 400, "invalid_header", id="a-name-not-ascii"),
        pytest.param("X Y", "1", 400, "invalid_header", id="a-name-with-a-space"),
    ],
)
async def test_a_header_that_is_wrong_is_refused_in_openais_shape(
    one: Rig, name: str, value: str, status: int, code: str
) -> None:
    talk = await began(one)
    fields = {**talk.all_headers, name.lower(): value}
    asked = len(one.up.requests)
    answered = await raw.ask(one.port, "POST", CHAT, fields.items(), GOOD)
    assert refusal(answered) == (status, code)
    assert len(one.up.requests) == asked
    await nothing_was_lost(talk)


async def test_a_thousand_headers_are_too_many(one: Rig) -> None:
    headers = [(f"X-{n}", "1") for n in range(1000)]
    answered = await raw.ask(one.port, "POST", CHAT, headers, GOOD)
    assert refusal(answered) == (431, "invalid_header")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="nonsense"),
        pytest.param(b"GET /v1/x HTTP/9.9\r\nHost: x\r\n\r\n", 400, id="version"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", 400, id="tls"),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            id="length-and-chunked",
        ),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            400,
            id="two-lengths",
        ),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, id="minus-one"
        ),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            400,
            id="another-coding",
        ),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n",
            400,
            id="a-chunk-size-that-is-no-number",
        ),
        pytest.param(
            b"POST /v1/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n",
            400,
            id="a-chunk-that-is-longer-than-it-says",
        ),
    ],
)
async def test_what_is_not_http_is_refused(one: Rig, sent: bytes, status: int) -> None:
    async with raw.line(one.port) as line:
        await line.send(sent)
        assert refusal(await line.answer()) == (status, "invalid_header")
    assert (await raw.ask(one.port, "GET", "/v1/models")).status == 200


async def test_garbage_in_a_chunked_body_loses_nothing(one: Rig) -> None:
    talk = await began(one)
    fields = {**talk.all_headers, "Transfer-Encoding": "chunked"}
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'5\r\n{"mod\r\nzz\r\n')
        assert refusal(await line.answer()) == (400, "invalid_header")
    await nothing_was_lost(talk)


@pytest.mark.parametrize(
    "target",
    ["/v1/caf\xe9", "/v1/x?q=\xff", "/v1/models#part", "/v1/%zz", "/v1/%00", "/v1/\x7f"],
    ids=["path-not-ascii", "query-not-ascii", "fragment", "no-hex", "null", "delete"],
)
async def test_an_odd_target_is_passed_on_or_refused_and_never_a_failure(
    one: Rig, target: str
) -> None:
    answered = await raw.ask(one.port, "GET", target)
    if answered.status != 200:
        assert refusal(answered) == (400, "invalid_header")
    assert (await raw.ask(one.port, "GET", "/v1/models")).status == 200
