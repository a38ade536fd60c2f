"""A session on a path that has no memory: the answer says so, whatever it is."""

from __future__ import annotations

import pytest

from tests.support.rig import CHAT, Rig
from tests.support.talk.harm import refusal
from tests.support.upstream import raw
from tests.support.upstream.answers import Script, error_answer, json_answer, sse

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWERS = {
    "json": json_answer({"object": "response"}),
    "stream": sse([b"data: 1\n\n", b"data: [DONE]\n\n"]),
    "error": error_answer(429, "slow down"),
    "audio": Script(headers=(("content-type", "audio/mpeg"),), pieces=[b"\xff\xfb"]),
}
PATHS = [
    "/v1/responses/compact",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/messages/batches",
    "/v1/files/x/content",
]


@pytest.mark.parametrize("script", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_without_memory_says_so(one: Rig, path: str, script: Script) -> None:
    one.up.reply(script)
    answered = await raw.ask(one.port, "POST", path, [("X-Session-Id", "s")], b"{}")
    assert answered.status == script.status
    assert answered.body == b"".join(piece for piece in script.pieces if isinstance(piece, bytes))
    assert answered.get("x-memory-status") == b"off"
    assert answered.get("x-memory-reason") == b"not_chat"
    assert answered.get("x-memory-session-id") == b"s"
    assert answered.get("x-memory-exchange-id") is None


async def test_the_session_may_be_in_the_path_or_an_alias(one: Rig) -> None:
    for path, headers in (("/s/s/v1/rerank", []), ("/v1/rerank", [("X-Thread-Id", "s")])):
        answered = await raw.ask(one.port, "POST", path, headers, b"{}")
        assert answered.get("x-memory-reason") == b"not_chat"
        assert answered.get("x-memory-session-id") == b"s"


async def test_other_methods_of_the_chat_path_have_no_memory_either(one: Rig) -> None:
    answered = await raw.ask(one.port, "GET", CHAT, [("X-Session-Id", "s")])
    assert answered.get("x-memory-reason") == b"not_chat"


async def test_without_a_session_nothing_is_said(one: Rig) -> None:
    answered = await raw.ask(one.port, "POST", "/v1/rerank", [], b"{}")
    assert not [name for name, _ in answered.headers if name.startswith(b"x-memory")]


async def test_a_malformed_session_is_refused_there_too(one: Rig) -> None:
    answered = await raw.ask(one.port, "POST", "/v1/rerank", [("X-Session-Id", "a b")], b"{}")
    assert refusal(answered) == (400, "invalid_session_id")


async def test_an_upstream_that_is_not_there_does_not_hide_it(one: Rig) -> None:
    one.up.reply(Script(drop=True))
    answered = await raw.ask(one.port, "POST", "/v1/rerank", [("X-Session-Id", "s")], b"{}")
    assert answered.status == 502
    assert answered.get("x-memory-reason") == b"not_chat"
