"""Whatever is sent, the answer is clear or the upstream's, and nothing that was said is lost."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support import raw
from tests.support.answers import Script
from tests.support.rig import CHAT, Rig, Talk, rig
from tests.support.words import answer, messages

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = json.dumps({"model": "m", "messages": messages("u2")}).encode()


async def began(rig: Rig) -> Talk:
    """A session that has something to lose."""
    talk = rig.talk()
    await talk.say("u1", "a1")
    rig.up.strict = False
    return talk


async def nothing_was_lost(talk: Talk, log: str = "u1 a1") -> None:
    """The proxy still serves, and the session is as it was."""
    rig = talk.rig
    rig.up.strict = True
    assert await talk.log() == log
    assert await talk.say("u7", "a7") == f"{log} u7"


def error(answer: raw.Answer) -> tuple[int, str]:
    """The status and code of an answer of the proxy's own."""
    assert answer.get("content-type") == b"application/json"
    said = json.loads(answer.body)
    assert said.keys() == {"error"}
    assert said["error"].keys() == {"message", "type", "param", "code"}
    assert said["error"]["message"].endswith(".")
    return answer.status, said["error"]["code"]


# Headers


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
    assert error(answered) == (status, code)
    assert len(one.up.requests) == asked
    await nothing_was_lost(talk)


async def test_a_thousand_headers_are_too_many(one: Rig) -> None:
    headers = [(f"X-{n}", "1") for n in range(1000)]
    answered = await raw.ask(one.port, "POST", CHAT, headers, GOOD)
    assert error(answered) == (431, "invalid_header")


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
        assert error(await line.answer()) == (status, "invalid_header")
    assert (await raw.ask(one.port, "GET", "/v1/models")).status == 200


async def test_garbage_in_a_chunked_body_loses_nothing(one: Rig) -> None:
    talk = await began(one)
    fields = {**talk.all_headers, "Transfer-Encoding": "chunked"}
    async with raw.line(one.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'5\r\n{"mod\r\nzz\r\n')
        assert error(await line.answer()) == (400, "invalid_header")
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
        assert error(answered) == (400, "invalid_header")
    assert (await raw.ask(one.port, "GET", "/v1/models")).status == 200


# Bodies that are not a chat


DEEP = 10_000
STRANGE = {
    "empty": b"",
    "not-json": b"hello",
    "half-json": b'{"model":"m","messages":[{"role":"us',
    "two-values": GOOD + GOOD,
    "a-list": b"[]",
    "a-string": b'"x"',
    "null": b"null",
    "no-messages": b'{"model":"m"}',
    "messages-null": b'{"model":"m","messages":null}',
    "messages-a-string": b'{"model":"m","messages":"hello"}',
    "messages-an-object": b'{"model":"m","messages":{"role":"user"}}',
    "messages-of-strings": b'{"model":"m","messages":["hello"]}',
    "messages-of-lists": b'{"model":"m","messages":[[]]}',
    "messages-of-null": b'{"model":"m","messages":[null]}',
    "not-utf-8": b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}',
    "utf-16": '{"model":"m","messages":[{"role":"user","content":"x"}]}'.encode("utf-16"),
    "nan": b'{"model":"m","messages":[{"role":"user","content":NaN}]}',
    "deep-list": b'{"model":"m","messages":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep-and-broken": b'{"model":"m","messages":[{"role":"user","content":' + b"[" * DEEP,
    "a-raw-control-character": b'{"model":"m","messages":[{"role":"user","content":"a\x01b"}]}',
}


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
async def test_a_body_that_is_no_chat_is_the_upstreams_to_judge(one: Rig, body: bytes) -> None:
    talk = await began(one)
    verdict = Script(status=400, pieces=[b"as the upstream says"])
    one.up.reply(verdict)
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), body)
    assert (answered.status, answered.body) == (400, b"as the upstream says")
    assert one.up.requests[-1].body == body
    assert answered.get("x-memory-status") == b"off"
    assert answered.get("x-memory-reason") == b"invalid_body"
    assert answered.get("x-memory-exchange-id") is None
    await nothing_was_lost(talk)


ODD = {
    "no-messages-at-all": b'{"model":"m","messages":[]}',
    "no-role": b'{"model":"m","messages":[{"content":"x"}]}',
    "role-a-number": b'{"model":"m","messages":[{"role":7,"content":"x"}]}',
    "role-unknown": b'{"model":"m","messages":[{"role":"robot","content":"x"}]}',
    "content-a-number": b'{"model":"m","messages":[{"role":"user","content":7}]}',
    "content-an-object": b'{"model":"m","messages":[{"role":"user","content":{"a":1}}]}',
    "content-null": b'{"model":"m","messages":[{"role":"user","content":null}]}',
    "content-of-anything": b'{"model":"m","messages":[{"role":"user","content":[1,null,[],{}]}]}',
    "no-content": b'{"model":"m","messages":[{"role":"user"}]}',
    "empty-objects": b'{"model":"m","messages":[{},{},{}]}',
    "calls-not-a-list": b'{"model":"m","messages":[{"role":"assistant","tool_calls":"x"}]}',
    "calls-of-anything": b'{"model":"m","messages":[{"role":"assistant","tool_calls":[1,{},[]]}]}',
    "a-result-of-nothing": b'{"model":"m","messages":[{"role":"tool","content":"x"}]}',
    "a-result-with-a-number": b'{"model":"m","messages":[{"role":"tool","tool_call_id":7}]}',
    "model-a-number": b'{"model":7,"messages":[{"role":"user","content":"x"}]}',
    "no-model": b'{"messages":[{"role":"user","content":"x"}]}',
    "model-ten-thousand-long": b'{"model":"' + b"m" * 10_000 + b'","messages":[{"role":"user"}]}',
    "n-a-string": b'{"model":"m","n":"x","messages":[{"role":"user","content":"x"}]}',
    "n-negative": b'{"model":"m","n":-3,"messages":[{"role":"user","content":"x"}]}',
    "n-a-billion": b'{"model":"m","n":1000000000,"messages":[{"role":"user","content":"x"}]}',
    "max-tokens-huge": b'{"model":"gpt-4","max_tokens":99999999999999999999999,"messages":'
    b'[{"role":"user","content":"x"}]}',
    "a-number-of-5000-digits": b'{"model":"m","n":'
    + b"9" * 5000
    + b',"messages":[{"role":"user"}]}',
    "messages-twice": b'{"model":"m","messages":[],"messages":[{"role":"user","content":"x"}]}',
    "role-twice": b'{"model":"m","messages":[{"role":"system","role":"user","content":"x"}]}',
    "half-an-emoji": b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}',
    "half-an-emoji-as-role": b'{"model":"m","messages":[{"role":"\\ud83d","content":"x"}]}',
    "half-an-emoji-as-key": b'{"model":"m","\\ud83d":1,"messages":[{"role":"user","content":"x"}]}',
    "a-null-character": b'{"model":"m","messages":[{"role":"user","content":"a\\u0000b"}]}',
    "deep-content": b'{"model":"m","messages":[{"role":"user","content":'
    + b"[" * DEEP
    + b"]" * DEEP
    + b"}]}",
    "deep-field": b'{"model":"m","x":'
    + b'{"a":' * DEEP
    + b"1"
    + b"}" * DEEP
    + b',"messages":[{"role":"user","content":"x"}]}',
    "a-thousand-messages": json.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "x"}] * 1000}
    ).encode(),
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
async def test_an_odd_chat_that_the_upstream_refuses_leaves_no_trace(
    one: Rig, body: bytes, stream: bool
) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    sent = body.replace(b'{"m', b'{"stream":true,"m', 1) if stream else body
    answered = await raw.ask(one.port, "POST", CHAT, talk.all_headers.items(), sent)
    assert (answered.status, answered.body) == (400, b"no")
    await nothing_was_lost(talk)


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
async def test_an_odd_chat_that_the_upstream_takes_is_sent_whole_and_the_session_lives(
    every: Rig, body: bytes
) -> None:
    talk = await began(every)
    every.up.reply(answer("a2"))
    response = await talk.post(body)
    assert response.status_code == 200
    every.up.reply(answer("a3"))
    assert (await talk.post(GOOD)).status_code == 200
    texts = [json.dumps(m) for m in every.up.requests[-1].messages]
    assert "u1" in texts[0] and "u2" in texts[-1]
    states = [m.state for m in await talk.history()]
    assert "superseded" not in states


async def test_an_encoded_body_loses_nothing(one: Rig) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    await talk.post(gzip.compress(GOOD), content_encoding="gzip")
    await nothing_was_lost(talk)


async def test_a_body_that_says_it_is_packed_and_is_not_is_the_upstreams_to_judge(one: Rig) -> None:
    talk = await began(one)
    one.up.reply(Script(status=400, pieces=[b"no"]))
    response = await talk.post(GOOD, content_encoding="gzip")
    assert (response.status_code, one.up.requests[-1].body) == (400, GOOD)
    await nothing_was_lost(talk)


# Large and slow


LIMIT = 200_000


@pytest_asyncio.fixture(loop_scope="session")
async def strict(tmp_path: Path) -> AsyncIterator[Rig]:
    """A proxy that takes little, and waits for little."""
    async with rig(tmp_path, server__max_body_bytes=LIMIT, server__body_timeout=0.2) as ready:
        yield ready


async def test_a_body_that_declares_too_much_is_refused_before_it_is_read(strict: Rig) -> None:
    talk = await began(strict)
    fields = {**talk.all_headers, "Content-Length": "100000000"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()))
        answered = await line.answer()
    assert error(answered) == (413, "request_too_large")
    assert answered.get("connection") == b"close"
    await nothing_was_lost(talk)


async def test_a_body_of_100_megabytes_is_refused_while_it_comes(strict: Rig) -> None:
    talk = await began(strict)
    async with raw.line(strict.port) as line:
        fields = {**talk.all_headers, "Content-Length": "100000000"}
        await line.send(raw.request("POST", CHAT, fields.items()))
        uploading = asyncio.create_task(_pour(line, b"x" * 100_000, 1000))
        assert error(await line.answer()) == (413, "request_too_large")
        await uploading
    await nothing_was_lost(talk)


async def test_a_chunked_body_is_refused_as_soon_as_it_is_too_large(strict: Rig) -> None:
    talk = await began(strict)
    async with raw.line(strict.port) as line:
        fields = {**talk.all_headers, "Transfer-Encoding": "chunked"}
        await line.send(raw.request("POST", CHAT, fields.items()))
        block = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        uploading = asyncio.create_task(_pour(line, block, 1000))
        assert error(await line.answer()) == (413, "request_too_large")
        await uploading
    await nothing_was_lost(talk)


async def _pour(line: raw.Line, block: bytes, times: int) -> None:
    try:
        for _ in range(times):
            await line.send(block)
    except ConnectionError:
        pass  # nobody reads what was refused


async def test_a_body_of_exactly_the_limit_is_taken(strict: Rig) -> None:
    talk = await began(strict)
    strict.up.reply(answer("a2"))
    body = GOOD + b" " * (LIMIT - len(GOOD))
    assert (await talk.post(body)).status_code == 200
    assert (await talk.post(body + b" ")).status_code == 413


async def test_without_a_session_a_body_may_be_of_any_size(strict: Rig) -> None:
    strict.up.strict = False
    answered = await raw.ask(strict.port, "POST", CHAT, [], b"x" * (3 * LIMIT))
    assert answered.status == 200
    assert len(strict.up.requests[-1].body) == 3 * LIMIT


async def test_a_body_that_does_not_come_is_given_up(strict: Rig) -> None:
    talk = await began(strict)
    fields = {**talk.all_headers, "Content-Length": "100"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'{"model"')
        answered = await line.answer()
    assert error(answered) == (408, "request_timeout")
    assert answered.get("connection") == b"close"
    await nothing_was_lost(talk)


async def test_a_client_that_leaves_within_its_body_leaves_nothing(strict: Rig) -> None:
    talk = await began(strict)
    asked = len(strict.up.requests)
    fields = {**talk.all_headers, "Content-Length": "100"}
    async with raw.line(strict.port) as line:
        await line.send(raw.request("POST", CHAT, fields.items()) + b'{"model"')
    assert len(strict.up.requests) == asked
    await nothing_was_lost(talk)
