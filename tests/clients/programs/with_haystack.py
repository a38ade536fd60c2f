"""Haystack's chat generator and agent."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

from application import MODEL, Place, serve, weather
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function


def generator(place: Place, **more: Any) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(
        model=MODEL,
        api_base_url=place.url,
        http_client_kwargs={"headers": place.headers},
        **more,
    )


def say(place: Place, text: str) -> Any:
    return generator(place).run([ChatMessage.from_user(text)])["replies"][0].text


def stream(place: Place, text: str) -> Iterator[str]:
    """It calls back; what it tells is handed over by a queue."""
    told: queue.Queue[str | None] = queue.Queue()
    chat = generator(place, streaming_callback=lambda chunk: told.put(chunk.content))

    def run() -> None:
        chat.run([ChatMessage.from_user(text)])
        told.put(None)

    thread = threading.Thread(target=run)
    thread.start()
    while (piece := told.get()) is not None:
        yield piece
    thread.join()


def tools(place: Place, text: str, streamed: bool) -> Any:
    (answer,) = converse(place, [text], streamed)
    return answer


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    callback = (lambda chunk: None) if streamed else None
    agent = Agent(
        chat_generator=generator(place),
        tools=[create_tool_from_function(weather)],
        streaming_callback=callback,
    )
    messages: list[ChatMessage] = []
    answers = []
    for text in texts:
        messages = agent.run([*messages, ChatMessage.from_user(text)])["messages"]
        answers.append(messages[-1].text)
    return answers


serve(say, stream, tools, converse)
