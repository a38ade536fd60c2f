"""Pydantic AI over either API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from application import KEY, MODEL, RESPONSES, Place, serve, weather
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    """A person."""

    name: str


def agent(place: Place, **more: Any) -> Agent[None, Any]:
    client = AsyncOpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers)
    provider = OpenAIProvider(openai_client=client)
    if RESPONSES:  # of a model that it does not know it tells thoughts as text
        return Agent(OpenAIResponsesModel("gpt-5", provider=provider), **more)
    return Agent(OpenAIChatModel(MODEL, provider=provider), **more)


async def say(place: Place, text: str) -> str:
    return (await agent(place).run(text)).output


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    async with agent(place).run_stream(text) as result:
        async for piece in result.stream_text(delta=True, debounce_by=None):
            yield piece


async def tools(place: Place, text: str, streamed: bool) -> str:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    kept = agent(place, tools=[weather])
    history: list[Any] = []
    answers = []
    for text in texts:
        if streamed:
            async with kept.run_stream(text, message_history=history) as result:
                answers.append(await result.get_output())
                history = result.all_messages()
        else:
            ran = await kept.run(text, message_history=history)
            answers.append(ran.output)
            history = ran.all_messages()
    return answers


async def extract(place: Place, text: str) -> Any:
    return (await agent(place, output_type=Person).run(text)).output.model_dump()


serve(say, stream, tools, converse, extract)
