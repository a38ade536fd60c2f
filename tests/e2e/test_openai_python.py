"""The official OpenAI SDK for Python against the real proxy on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from pydantic import BaseModel

from tests.support.processes.running import Running
from tests.support.store.history import TOKEN, Remembered
from tests.support.upstream.answers import (
    chat_completion,
    chat_stream,
    error_answer,
    json_answer,
    sse,
)
from tests.support.upstream.answers import tool_call as call
from tests.support.upstream.scripted import Request, ScriptedUpstream
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.e2e
T = TypeVar("T")

MODEL = "scripted-1"
SESSION = {"X-Session-Id": "talk"}


def user(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def texts(request: Request) -> list[str]:
    return [message["content"] for message in request.json["messages"]]


@pytest.fixture
async def client(proxy: Running) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=proxy.v1, api_key=TOKEN, default_headers=SESSION, max_retries=0
    ) as client:
        yield client


async def in_thread(proxy: Running, use: Callable[[OpenAI], T]) -> T:
    """What the synchronous client gives, while the loop of this test serves it."""

    def run() -> T:
        with OpenAI(
            base_url=proxy.v1, api_key=TOKEN, default_headers=SESSION, max_retries=0
        ) as client:
            return use(client)

    return await asyncio.to_thread(run)


async def test_the_second_request_carries_the_first_exchange(
    client: AsyncOpenAI, up: ScriptedUpstream, remembered: Remembered
) -> None:
    first = await client.chat.completions.create(model=MODEL, messages=user("one"))
    second = await client.chat.completions.create(model=MODEL, messages=user("two"))
    assert first.choices[0].message.content == "reply 1: one"
    assert second.choices[0].message.content == "reply 2: two"
    assert texts(up.requests[-1]) == ["one", "reply 1: one", "two"]
    assert await remembered.texts("talk") == ["one", "reply 1: one", "two", "reply 2: two"]


async def test_the_synchronous_client_remembers_too_streaming_and_not(
    proxy: Running, up: ScriptedUpstream
) -> None:
    def use(client: OpenAI) -> tuple[str, ChatCompletion]:
        with client.chat.completions.create(
            model=MODEL, messages=user("one"), stream=True
        ) as stream:
            said = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        return said, client.chat.completions.create(model=MODEL, messages=user("two"))

    said, second = await in_thread(proxy, use)
    assert said == "reply 1: one"
    assert second.choices[0].message.content == "reply 2: two"
    assert texts(up.requests[-1]) == ["one", "reply 1: one", "two"]


async def test_a_stream_is_remembered_by_the_time_the_client_has_read_it(
    client: AsyncOpenAI, remembered: Remembered
) -> None:
    stream = await client.chat.completions.create(
        model=MODEL, messages=user("one"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "reply 1: one"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 12
    assert await remembered.texts("talk") == ["one", "reply 1: one"]


async def test_the_stream_helper_accumulates_what_the_upstream_said(
    client: AsyncOpenAI, up: ScriptedUpstream
) -> None:
    up.reply(sse(chat_stream(["Hel", "lo ", "\u2028", "\U0001f600"])))
    async with client.chat.completions.stream(model=MODEL, messages=user("one")) as stream:
        deltas = [event.delta async for event in stream if event.type == "content.delta"]
        final = await stream.get_final_completion()
    assert "".join(deltas) == "Hello \u2028\U0001f600"
    assert final.choices[0].message.content == "Hello \u2028\U0001f600"
    await client.chat.completions.create(model=MODEL, messages=user("two"))
    assert texts(up.requests[-1])[1] == "Hello \u2028\U0001f600"


async def test_a_client_that_breaks_off_a_stream_leaves_a_usable_session(
    client: AsyncOpenAI, up: ScriptedUpstream, remembered: Remembered
) -> None:
    held = asyncio.Event()
    pieces = chat_stream(["half", "of it"])
    up.reply(sse([*pieces[:2], held, *pieces[2:]]))
    stream = await client.chat.completions.create(model=MODEL, messages=user("one"), stream=True)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()
    async with asyncio.timeout(PATIENCE):
        await up.requests[0].gone.wait()
    again = await client.chat.completions.create(model=MODEL, messages=user("two"))
    assert again.choices[0].message.content == "reply 1: two"
    assert await remembered.texts("talk") == ["one", "half", "two", "reply 1: two"]


class Person(BaseModel):
    name: str


async def test_parse_reads_structured_output_through_the_proxy(
    client: AsyncOpenAI, up: ScriptedUpstream
) -> None:
    up.reply(json_answer(chat_completion('{"name": "Kai"}')))
    answer = await client.chat.completions.parse(
        model=MODEL, messages=user("who?"), response_format=Person
    )
    assert answer.choices[0].message.parsed == Person(name="Kai")
    sent = up.requests[0].json
    assert sent["response_format"]["json_schema"]["schema"]["properties"].keys() == {"name"}


TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
CALLS = [
    call("weather", '{"city": "Oslo"}', "call_1"),
    call("weather", '{"city": "Rome"}', "call_2"),
]


def results() -> list[ChatCompletionMessageParam]:
    return [
        {"role": "tool", "tool_call_id": "call_1", "content": "snow"},
        {"role": "tool", "tool_call_id": "call_2", "content": "sun"},
    ]


def roles(request: Request) -> list[str]:
    return [message["role"] for message in request.json["messages"]]


async def test_parallel_calls_are_answered_with_nothing_but_their_results(
    client: AsyncOpenAI, up: ScriptedUpstream
) -> None:
    up.reply(json_answer(chat_completion(None, tool_calls=CALLS)))
    first = await client.chat.completions.create(model=MODEL, messages=user("?"), tools=TOOLS)
    assert [c.id for c in first.choices[0].message.tool_calls or ()] == ["call_1", "call_2"]
    await client.chat.completions.create(model=MODEL, messages=results(), tools=TOOLS)
    assert roles(up.requests[1]) == ["user", "assistant", "tool", "tool"]
    assert up.requests[1].json["messages"][1]["tool_calls"] == CALLS
    assert not up.refused


async def test_a_tool_loop_that_resends_the_sdks_own_message_is_recorded_once(
    client: AsyncOpenAI, up: ScriptedUpstream, remembered: Remembered
) -> None:
    up.reply(sse(chat_stream(tool_calls=CALLS)))
    async with client.chat.completions.stream(
        model=MODEL, messages=user("?"), tools=TOOLS
    ) as stream:
        asked = (await stream.get_final_completion()).choices[0].message
    dumped: Any = asked.model_dump(exclude_none=True)
    again = [*user("?"), dumped, *results()]
    await client.chat.completions.create(model=MODEL, messages=again, tools=TOOLS)
    assert roles(up.requests[1]) == ["user", "assistant", "tool", "tool"]
    await client.chat.completions.create(model=MODEL, messages=user("thanks"), tools=TOOLS)
    assert roles(up.requests[2]) == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert [message["role"] for message in await remembered("talk")] == [
        *roles(up.requests[2]),
        "assistant",
    ]
    assert not up.refused


async def test_the_raw_response_tells_what_memory_did(client: AsyncOpenAI) -> None:
    await client.chat.completions.create(model=MODEL, messages=user("one"))
    raw = await client.chat.completions.with_raw_response.create(model=MODEL, messages=user("two"))
    assert raw.headers["X-Memory-Status"] == "applied"
    assert raw.headers["X-Memory-Messages"] == "2"
    assert raw.headers["X-Memory-Session-Id"] == "talk"
    assert raw.headers["X-Memory-Exchange-Id"]
    assert int(raw.headers["X-Memory-Tokens"]) > 0
    assert raw.headers["Server-Timing"].startswith("memory;dur=")
    assert raw.parse().choices[0].message.content == "reply 2: two"


async def test_a_streaming_response_has_the_headers_before_its_body(client: AsyncOpenAI) -> None:
    async with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=user("one"), stream=True
    ) as response:
        assert response.headers["X-Memory-Status"] == "empty"
        lines = [line async for line in response.iter_lines()]
    assert lines[-1] in ("data: [DONE]", "")
    assert sum(line.startswith("data: ") for line in lines) > 3


async def test_a_session_chosen_by_extra_headers_is_a_session_of_its_own(
    client: AsyncOpenAI, up: ScriptedUpstream, remembered: Remembered
) -> None:
    await client.chat.completions.create(model=MODEL, messages=user("one"))
    await client.chat.completions.create(
        model=MODEL, messages=user("two"), extra_headers={"X-Session-Id": "other"}
    )
    assert texts(up.requests[1]) == ["two"]
    assert await remembered.texts("other") == ["two", "reply 2: two"]
    assert up.requests[1].header("x-session-id") is None


async def test_the_session_can_stand_in_the_base_url(
    proxy: Running, up: ScriptedUpstream, remembered: Remembered
) -> None:
    async with AsyncOpenAI(base_url=f"{proxy.url}/s/in-path/v1", api_key=TOKEN) as client:
        await client.chat.completions.create(model=MODEL, messages=user("one"))
    assert up.requests[0].path == "/v1/chat/completions"
    assert await remembered.texts("in-path") == ["one", "reply 1: one"]


async def test_another_key_does_not_see_the_session(
    client: AsyncOpenAI, up: ScriptedUpstream
) -> None:
    await client.chat.completions.create(model=MODEL, messages=user("one"))
    stranger = client.with_options(api_key="sk-another")
    await stranger.chat.completions.create(model=MODEL, messages=user("two"))
    assert texts(up.requests[1]) == ["two"]


async def test_models_are_relayed(client: AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["scripted-1"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(401, openai.AuthenticationError, id="401"),
        pytest.param(403, openai.PermissionDeniedError, id="403"),
        pytest.param(404, openai.NotFoundError, id="404"),
        pytest.param(429, openai.RateLimitError, id="429"),
        pytest.param(500, openai.InternalServerError, id="500"),
    ],
)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_errors_of_the_upstream_reach_the_sdk_and_leave_no_trace(
    client: AsyncOpenAI,
    up: ScriptedUpstream,
    remembered: Remembered,
    status: int,
    error: type[openai.APIStatusError],
    stream: bool,
) -> None:
    up.reply(error_answer(status, "the upstream says no", "its_code"))
    with pytest.raises(error) as caught:
        await client.chat.completions.create(model=MODEL, messages=user("one"), stream=stream)
    assert caught.value.status_code == status
    assert caught.value.code == "its_code"
    assert "the upstream says no" in caught.value.message
    assert await remembered("talk") == []


async def test_an_error_event_in_the_stream_is_raised_by_the_sdk(
    client: AsyncOpenAI, up: ScriptedUpstream
) -> None:
    broken = b'data: {"error": {"message": "out of memory", "type": "server_error"}}\n\n'
    up.reply(sse([*chat_stream(["half"])[:2], broken]))
    stream = await client.chat.completions.create(model=MODEL, messages=user("one"), stream=True)
    with pytest.raises(openai.APIError, match="out of memory"):
        _ = [chunk async for chunk in stream]


async def test_errors_of_the_proxy_are_of_the_kind_that_the_sdk_knows(client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(
            model=MODEL, messages=user("one"), extra_headers={"X-Session-Id": "two words"}
        )
    assert (caught.value.code, caught.value.param) == ("invalid_session_id", "X-Session-Id")


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_the_sdks_own_retry_after_a_500_stores_one_turn(
    client: AsyncOpenAI, up: ScriptedUpstream, remembered: Remembered, stream: bool
) -> None:
    up.reply(error_answer(500, "try again"))
    patient = client.with_options(max_retries=2)
    answer = await patient.chat.completions.create(model=MODEL, messages=user("one"), stream=stream)
    if not isinstance(answer, ChatCompletion):
        _ = [chunk async for chunk in answer]
    assert len(up.requests) == 2
    assert up.requests[1].header("x-stainless-retry-count") == "1"
    assert await remembered.texts("talk") == ["one", "reply 1: one"]


def azure(proxy: Running) -> AsyncAzureOpenAI:
    return AsyncAzureOpenAI(
        azure_endpoint=proxy.url,
        api_key=TOKEN,
        api_version="2024-10-21",
        azure_deployment="my-gpt",
        default_headers=SESSION,
    )


async def test_azures_deployment_path_has_memory(
    proxy: Running, up: ScriptedUpstream, remembered: Remembered
) -> None:
    async with azure(proxy) as client:
        await client.chat.completions.create(model="my-gpt", messages=user("one"))
        await client.chat.completions.create(model="my-gpt", messages=user("two"))
    path = b"/v1/deployments/my-gpt/chat/completions?api-version=2024-10-21"
    assert up.requests[1].target == path
    assert up.requests[1].header("api-key") == TOKEN
    assert texts(up.requests[1]) == ["one", "reply 1: one", "two"]
    assert await remembered.texts("talk") == ["one", "reply 1: one", "two", "reply 2: two"]


async def test_azures_client_reaches_what_has_no_deployment(
    proxy: Running, up: ScriptedUpstream
) -> None:
    up.always(json_answer({"object": "list", "data": []}))
    async with azure(proxy) as client:
        await client.files.list()
        await client.batches.list()
    paths = [b"/v1/files?api-version=2024-10-21", b"/v1/batches?api-version=2024-10-21"]
    assert [asked.target for asked in up.requests] == paths


async def test_what_the_sdk_sends_is_what_the_upstream_gets_where_there_is_no_memory(
    proxy: Running, up: ScriptedUpstream
) -> None:
    async with AsyncOpenAI(base_url=proxy.v1, api_key=TOKEN) as client:
        await client.chat.completions.create(
            model=MODEL, messages=user("one"), extra_body={"unknown": {"kept": [1, None]}}
        )
    sent = json.loads(up.requests[0].body)
    assert sent == {"messages": user("one"), "model": MODEL, "unknown": {"kept": [1, None]}}
    assert "AsyncOpenAI/Python" in up.requests[0].header_list("user-agent")[0]
