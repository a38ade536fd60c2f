"""OpenAI's Agents SDK over either API, with its own session in SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from application import KEY, MODEL, RESPONSES, Place, serve, weather
from openai import AsyncOpenAI

set_tracing_disabled(True)


def agent(place: Place) -> Agent[None]:
    client = AsyncOpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers)
    model = (OpenAIResponsesModel if RESPONSES else OpenAIChatCompletionsModel)(MODEL, client)
    return Agent(name="Assistant", model=model, tools=[function_tool(weather)])


async def asked(agent: Agent[None], text: str, streamed: bool, session: Any = None) -> Any:
    if not streamed:
        return (await Runner.run(agent, text, session=session)).final_output
    result = Runner.run_streamed(agent, text, session=session)
    async for _ in result.stream_events():
        pass
    return result.final_output


async def say(place: Place, text: str) -> Any:
    return await asked(agent(place), text, False)


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    async for event in Runner.run_streamed(agent(place), text).stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield event.data.delta


async def tools(place: Place, text: str, streamed: bool) -> Any:
    return await asked(agent(place), text, streamed)


async def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    kept, session = agent(place), SQLiteSession(place.session)
    return [await asked(kept, text, streamed, session) for text in texts]


serve(say, stream, tools, converse)
