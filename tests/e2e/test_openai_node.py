"""The official OpenAI SDK for Node.js against the real proxy on a real socket.

npm installs it into tests/node/node_modules, once; what applications do is in scenarios.mjs.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.support.processes.node import FOLDER, node_with_packages
from tests.support.processes.running import Running
from tests.support.store.history import Remembered
from tests.support.upstream.answers import chat_completion as completion
from tests.support.upstream.answers import chat_stream, error_answer, json_answer, sse, tool_call
from tests.support.upstream.scripted import ScriptedUpstream

# One installation is for all of them.
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.node,
    pytest.mark.xdist_group("node"),
]

RUN_SECONDS = 30


@pytest.fixture(scope="module")
def node() -> str:
    return node_with_packages()


class Application:
    """Runs a scenario and gives what it printed."""

    def __init__(self, node: str, proxy: Running) -> None:
        self._node, self._url = node, proxy.v1

    async def __call__(self, scenario: str) -> Any:
        process = await asyncio.create_subprocess_exec(
            self._node,
            "scenarios.mjs",
            scenario,
            self._url,
            cwd=FOLDER,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(RUN_SECONDS):
                out, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, errors.decode()
        return json.loads(out)


@pytest.fixture
def application(node: str, proxy: Running) -> Application:
    return Application(node, proxy)


def sent(up: ScriptedUpstream, at: int) -> list[str]:
    """The roles of the messages of a request."""
    return [message["role"] for message in up.requests[at].messages]


async def test_the_second_request_carries_the_first_exchange(
    application: Application, up: ScriptedUpstream, remembered: Remembered
) -> None:
    assert await application("create") == ["reply 1: one", "reply 2: two"]
    assert [m["content"] for m in up.requests[1].messages] == ["one", "reply 1: one", "two"]
    assert await remembered.texts("talk") == ["one", "reply 1: one", "two", "reply 2: two"]


async def test_a_stream_with_usage_is_read_and_remembered(
    application: Application, remembered: Remembered
) -> None:
    assert await application("stream") == {"text": "reply 1: one", "total": 12}
    assert await remembered.texts("talk") == ["one", "reply 1: one"]


async def test_the_stream_helper_accumulates_what_the_upstream_said(
    application: Application, up: ScriptedUpstream
) -> None:
    up.reply(sse(chat_stream(["Hel", "lo ", "\u2028", "\U0001f600"])))
    assert await application("helper") == "Hello \u2028\U0001f600"


async def test_streamed_parallel_calls_are_answered_with_nothing_but_their_results(
    application: Application, up: ScriptedUpstream
) -> None:
    calls = [
        tool_call("weather", '{"city": "Oslo"}', "call_1"),
        tool_call("weather", '{"city": "Rome"}', "call_2"),
    ]
    up.reply(sse(chat_stream(tool_calls=calls)))
    up.reply(json_answer(completion("cold")))
    assert await application("tools") == {"ids": ["call_1", "call_2"], "text": "cold"}
    assert sent(up, 1) == ["user", "assistant", "tool", "tool"]
    assert up.requests[1].messages[1]["tool_calls"] == calls
    assert not up.refused


async def test_the_sdks_own_tool_loop_resends_everything_and_is_recorded_once(
    application: Application, up: ScriptedUpstream, remembered: Remembered
) -> None:
    call = tool_call("weather", '{"city": "Oslo"}', "call_1")
    up.reply(json_answer(completion(None, tool_calls=[call])), json_answer(completion("cold")))
    assert await application("loop") == "cold"
    assert sent(up, 1) == ["user", "assistant", "tool"]
    roles = [message["role"] for message in await remembered("talk")]
    assert roles == ["user", "assistant", "tool", "assistant"]


async def test_with_response_gives_the_headers_of_memory(application: Application) -> None:
    seen = await application("headers")
    assert seen["text"] == "reply 2: two"
    assert seen["memory"]["x-memory-status"] == "applied"
    assert seen["memory"]["x-memory-messages"] == "2"
    assert seen["memory"]["x-memory-session-id"] == "talk"


async def test_an_error_of_the_upstream_is_the_sdks_own_kind_of_error(
    application: Application, up: ScriptedUpstream, remembered: Remembered
) -> None:
    up.reply(error_answer(403, "no", "its_code"))
    seen = await application("error")
    assert seen == {"kind": "PermissionDeniedError", "status": 403, "code": "its_code"}
    assert await remembered("talk") == []


async def test_the_sdks_own_retry_after_a_500_stores_one_turn(
    application: Application, up: ScriptedUpstream, remembered: Remembered
) -> None:
    up.reply(error_answer(500, "try again"))
    assert await application("error") is None
    assert up.requests[1].header("x-stainless-retry-count") == "1"
    assert await remembered.texts("talk") == ["one", "reply 1: one"]
