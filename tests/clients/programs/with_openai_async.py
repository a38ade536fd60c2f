"""The official SDK, asynchronous."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from application import KEY, MODEL, WEATHER, Place, result_of, serve
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessage


def client(place: Place) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def say(place: Place, text: str) -> str | None:
    async with client(place) as openai:
        answer = await openai.chat.completions.create(model=MODEL, messages=[user(text)])
    return answer.choices[0].message.content


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    async with client(place) as openai:
        chunks = await openai.chat.completions.create(
            model=MODEL, messages=[user(text)], stream=True
        )
        async for chunk in chunks:
            yield chunk.choices[0].delta.content or ""


async def tools(place: Place, text: str, streamed: bool) -> str | None:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[str | None]:
    messages: list[dict[str, Any]] = []
    answers = []
    async with client(place) as openai:
        for text in texts:
            messages.append(user(text))
            answers.append(await turn(openai, messages, streamed))
    return answers


async def turn(openai: AsyncOpenAI, messages: list[dict[str, Any]], streamed: bool) -> str | None:
    while True:
        said = await answer(openai, messages, streamed)
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            content = result_of(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


async def answer(
    openai: AsyncOpenAI, messages: list[dict[str, Any]], streamed: bool
) -> ChatCompletionMessage:
    asked: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": [WEATHER]}
    if not streamed:
        return (await openai.chat.completions.create(**asked)).choices[0].message
    async with openai.chat.completions.stream(**asked) as events:
        return (await events.get_final_completion()).choices[0].message


serve(say, stream, tools, converse)
