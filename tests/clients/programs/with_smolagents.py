"""smolagents: its model, and the agent that tells its calls as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from application import KEY, MODEL, Place, serve, weather
from smolagents import ChatMessage, MessageRole, OpenAIServerModel, ToolCallingAgent, tool


def model(place: Place) -> OpenAIServerModel:
    return OpenAIServerModel(
        model_id=MODEL,
        api_base=place.url,
        api_key=KEY,
        client_kwargs={"default_headers": place.headers},
        retry=False,
    )


def user(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": text}])


def say(place: Place, text: str) -> Any:
    return model(place).generate([user(text)]).content


def stream(place: Place, text: str) -> Iterator[str]:
    for delta in model(place).generate_stream([user(text)]):
        yield delta.content or ""


def tools(place: Place, text: str, streamed: bool) -> Any:
    agent = ToolCallingAgent(
        [tool(weather)], model(place), stream_outputs=streamed, verbosity_level=0
    )
    return agent.run(text)


serve(say, stream, tools)
