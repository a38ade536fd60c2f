"""Without a session the proxy is not there: bodies, targets and errors are as they came."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from tests.support.rig import CHAT, Rig
from tests.support.talk.words import messages
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, error_answer

pytestmark = pytest.mark.asyncio(loop_scope="session")

BINARY = random.Random(1).randbytes(100_000)
MULTIPART = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    + BINARY
    + b"\r\n--b--\r\n"
)
WEIRD = b'{ "z" : 1e999,\r\n\t"messages":[ {"content":"\\ud83d", "role" : "user"}],"a":1,"a":2 }\n'

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
    relayed: Rig, method: str, path: str, kind: str, body: bytes
) -> None:
    reply = random.Random(2).randbytes(5000)
    relayed.up.always(Script(headers=(("content-type", "audio/mpeg"),), pieces=[reply]))
    answer = await raw.ask(relayed.port, method, path, [("Content-Type", kind)], body)
    assert (answer.status, answer.body) == (200, reply)
    asked = relayed.up.requests[-1]
    assert (asked.method, asked.path, asked.body) == (method, path, body)
    assert asked.header_list("content-length") == [str(len(body))]
    assert asked.header_list("transfer-encoding") == []


async def test_a_chunked_body_arrives_as_it_was_sent(relayed: Rig) -> None:
    pieces = [BINARY[at : at + 7000] for at in range(0, len(BINARY), 7000)]
    head = raw.request("POST", "/v1/files", [("Transfer-Encoding", "chunked")])
    async with raw.line(relayed.port) as line:
        await line.send(head + raw.chunked(pieces))
        assert (await line.answer()).status == 200
    asked = relayed.up.requests[-1]
    assert asked.body == BINARY
    framing = asked.header_list("content-length") + asked.header_list("transfer-encoding")
    assert framing in (["chunked"], [str(len(BINARY))])  # the latter if it came in one piece


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "POST"])
async def test_a_request_without_a_body_gets_none_and_no_framing(relayed: Rig, method: str) -> None:
    answer = await raw.ask(relayed.port, method, "/v1/models")
    assert answer.status == 200
    asked = relayed.up.requests[-1]
    assert (asked.method, asked.body) == (method, b"")
    assert asked.header("transfer-encoding") is None
    assert asked.header("content-length") is None


async def test_an_answer_to_head_keeps_its_length_and_has_no_body(relayed: Rig) -> None:
    relayed.up.always(Script(pieces=[b"x" * 321]))
    answer = await raw.ask(relayed.port, "HEAD", "/v1/models")
    assert (answer.get("content-length"), answer.body) == (b"321", b"")


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_pass(relayed: Rig, status: int) -> None:
    relayed.up.always(Script(status=status, headers=(("etag", '"x"'),)))
    answer = await raw.ask(relayed.port, "GET", "/v1/files/f")
    assert (answer.status, answer.get("etag"), answer.body) == (status, b'"x"', b"")
    assert answer.get("transfer-encoding") is None
    assert (await raw.ask(relayed.port, "GET", "/v1/files/f")).status == status


@pytest.mark.parametrize("status", [204, 304])
async def test_a_length_of_no_body_is_waited_for_by_nobody(relayed: Rig, status: int) -> None:
    relayed.up.always(Script(raw=b"HTTP/1.1 %d X\r\nContent-Length: 100\r\n\r\n" % status))
    async with raw.line(relayed.port) as connection:
        for _ in range(2):
            await connection.send(raw.request("GET", "/v1/files/f"))
            answer = await connection.answer("GET")
            assert (answer.status, answer.get("content-length")) == (status, None)


async def test_an_answer_in_chunks_is_whole_or_none_whatever_length_it_tells(
    relayed: Rig,
) -> None:
    length = (("content-length", "2"),)
    relayed.up.always(Script(headers=length, pieces=[b"ab", b"cd"], framing="chunked"))
    answer = await raw.ask(relayed.port, "POST", CHAT, [], b"{}")
    assert answer.body == b"abcd" or answer.status == 502  # which is aiohttp's
    assert answer.whole


@pytest.mark.parametrize("status", [101, 600, 999])
async def test_a_status_that_there_is_not_is_no_answer(relayed: Rig, status: int) -> None:
    relayed.up.always(Script(raw=b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nno" % status))
    answer = await raw.ask(relayed.port, "POST", CHAT, [], b"{}")
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["code"]) == (502, "upstream_unreachable")
    assert "not valid HTTP" in error["message"]


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_a_binary_answer_arrives_as_it_was_sent(relayed: Rig, framing: str) -> None:
    pieces = [BINARY[:10], BINARY[10:70_000], BINARY[70_000:]]
    kind = (("content-type", "audio/mpeg"),)
    relayed.up.always(Script(headers=kind, pieces=pieces, framing=framing))  # type: ignore[arg-type]
    answer = await raw.ask(relayed.port, "POST", "/v1/audio/speech", [], b"{}")
    assert (answer.body, answer.whole) == (BINARY, True)
    assert answer.get("content-length") == (b"100000" if framing == "length" else None)


async def test_a_compressed_answer_stays_compressed(relayed: Rig) -> None:
    packed = gzip.compress(b'{"x": 1}')
    relayed.up.always(Script(headers=(("content-encoding", "gzip"),), pieces=[packed]))
    answer = await raw.ask(relayed.port, "POST", CHAT, [("Accept-Encoding", "gzip, br")], b"{}")
    assert (answer.body, answer.get("content-encoding")) == (packed, b"gzip")
    assert relayed.up.requests[-1].header("accept-encoding") == "gzip, br"


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
async def test_path_and_query_arrive_as_they_were_sent(
    relayed: Rig, sent: str, target: str
) -> None:
    assert (await raw.ask(relayed.port, "GET", sent)).status == 200
    assert relayed.up.requests[-1].target == target.encode()


# Errors


@pytest.mark.parametrize("session", [None, "s"], ids=["no-session", "session"])
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 502, 503, 529])
async def test_upstream_errors_pass_verbatim(
    relayed: Rig, status: int, session: str | None
) -> None:
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
    relayed.up.reply(Script(status=status, headers=extra, pieces=[body + b" \n"]))
    sent = json.dumps({"model": "m", "messages": messages("u1")}).encode()
    headers = [("X-Session-Id", session)] if session else []
    answer = await raw.ask(relayed.port, "POST", CHAT, headers, sent)
    assert (answer.status, answer.body) == (status, body + b" \n")
    got = {(name, value) for name, value in answer.headers}
    assert {(name.encode(), value.encode()) for name, value in extra} <= got
    assert relayed.up.requests[-1].body == sent
