"""Semantic Kernel's chat completion and agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from application import KEY, MODEL, Place, serve, weather
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function


class Weather:
    @kernel_function(name="weather", description="Tells the weather in a city.")
    def tell(self, city: Annotated[str, "The name of the city."]) -> str:
        return weather(city)


def service(place: Place) -> OpenAIChatCompletion:
    client = AsyncOpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers)
    return OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)


async def say(place: Place, text: str) -> str:
    history = ChatHistory()
    history.add_user_message(text)
    answer = await service(place).get_chat_message_content(
        history, OpenAIChatPromptExecutionSettings()
    )
    return str(answer)


async def stream(place: Place, text: str) -> AsyncIterator[str]:
    history = ChatHistory()
    history.add_user_message(text)
    async for piece in service(place).get_streaming_chat_message_content(
        history, OpenAIChatPromptExecutionSettings()
    ):
        yield str(piece)


async def tools(place: Place, text: str, streamed: bool) -> str:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    agent = ChatCompletionAgent(service=service(place), name="Assistant", plugins=[Weather()])
    thread = ChatHistoryAgentThread()
    return [await asked(agent, text, thread, streamed) for text in texts]


async def asked(agent: ChatCompletionAgent, text: str, thread: Any, streamed: bool) -> str:
    if not streamed:
        return str(await agent.get_response(messages=text, thread=thread))
    return "".join(
        [str(p.message) async for p in agent.invoke_stream(messages=text, thread=thread)]
    )


serve(say, stream, tools, converse)
