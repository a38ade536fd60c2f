"""AutoGen's client and assistant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from application import KEY, MODEL, Place, serve, weather
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelFamily, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient


def client(place: Place) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(
        model=MODEL,
        base_url=place.url,
        api_key=KEY,
        default_headers=place.headers,
        model_info={
            "vision": False,
            "function_calling": True,
            "json_output": True,
            "structured_output": True,
            "family": ModelFamily.UNKNOWN,
        },
    )


async def say(place: Place, text: str) -> Any:
    return (await client(place).create([UserMessage(content=text, source="user")])).content


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    async for piece in client(place).create_stream([UserMessage(content=text, source="user")]):
        if isinstance(piece, str):
            yield piece


async def tools(place: Place, text: str, streamed: bool) -> Any:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    agent = AssistantAgent(
        "assistant",
        model_client=client(place),
        tools=[weather],
        system_message=None,
        max_tool_iterations=5,
        model_client_stream=streamed,
    )
    return [(await agent.run(task=text)).messages[-1].to_text() for text in texts]


serve(say, stream, tools, converse)
