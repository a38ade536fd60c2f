"""LlamaIndex for OpenAI-compatible upstreams, with its function agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from application import KEY, MODEL, Place, serve, weather
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.workflow import Context
from llama_index.llms.openai_like import OpenAILike


def model(place: Place) -> OpenAILike:
    return OpenAILike(
        model=MODEL,
        api_base=place.url,
        api_key=KEY,
        default_headers=place.headers,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=1,  # the waits between more add up
    )


def say(place: Place, text: str) -> Any:
    return model(place).chat([ChatMessage(role="user", content=text)]).message.content


def stream(place: Place, text: str) -> Iterator[str]:
    for piece in model(place).stream_chat([ChatMessage(role="user", content=text)]):
        yield piece.delta or ""


async def tools(place: Place, text: str, streamed: bool) -> str:
    (answer,) = await converse(place, [text], streamed)
    return answer


async def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    agent = FunctionAgent(tools=[weather], llm=model(place), streaming=streamed)
    context = Context(agent)
    return [str(await agent.run(text, ctx=context)) for text in texts]


serve(say, stream, tools, converse)
