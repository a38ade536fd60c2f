"""Agno's models and agent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat, OpenAIResponses
from application import KEY, MODEL, RESPONSES, Place, serve, weather


def agent(place: Place, **more: Any) -> Agent:
    kind = OpenAIResponses if RESPONSES else OpenAIChat
    model = kind(id=MODEL, base_url=place.url, api_key=KEY, default_headers=place.headers)
    return Agent(model=model, telemetry=False, **more)


def say(place: Place, text: str) -> Any:
    return agent(place).run(text).content


def stream(place: Place, text: str) -> Iterator[str]:
    for event in agent(place).run(text, stream=True):
        if event.content:
            yield event.content


def asked(agent: Agent, text: str, streamed: bool) -> Any:
    if not streamed:
        return agent.run(text).content
    events = agent.run(text, stream=True)
    return "".join(e.content or "" for e in events if e.event == "RunContent")


def tools(place: Place, text: str, streamed: bool) -> Any:
    return asked(agent(place, tools=[weather]), text, streamed)


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    kept = agent(
        place,
        tools=[weather],
        db=InMemoryDb(),
        session_id="one",
        add_history_to_context=True,
        num_history_runs=20,
    )
    return [asked(kept, text, streamed) for text in texts]


serve(say, stream, tools, converse)
