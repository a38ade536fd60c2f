"""Anthropic's SDK, synchronous: its tool runner, and the loop and history that people write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from anthropic import Anthropic, beta_tool
from anthropic.types import Message
from application import KEY, MODEL, WEATHER, Place, result_of, serve, weather

ASKED: dict[str, Any] = {"model": MODEL, "max_tokens": 200}
TOOL = {
    "name": "weather",
    "description": WEATHER["function"]["description"],
    "input_schema": WEATHER["function"]["parameters"],
}
PERSON = {
    "name": "person",
    "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def client(place: Place) -> Anthropic:
    return Anthropic(base_url=place.origin, api_key=KEY, default_headers=place.headers)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def say(place: Place, text: str) -> str:
    with client(place) as anthropic:
        return text_of(anthropic.messages.create(**ASKED, messages=[user(text)]))


def stream(place: Place, text: str) -> Iterator[str]:
    with (
        client(place) as anthropic,
        anthropic.messages.stream(**ASKED, messages=[user(text)]) as told,
    ):
        yield from told.text_stream


def tools(place: Place, text: str, streamed: bool) -> str:
    """The runner sends all again."""
    return run(place, text, streamed, thread=False)


def threads(place: Place, text: str, streamed: bool) -> str:
    """The runner sends what is new: the upstream keeps the conversation."""
    return run(place, text, streamed)


def run(place: Place, text: str, streamed: bool, **more: Any) -> str:
    with client(place) as anthropic:
        runner = anthropic.beta.messages.tool_runner(
            **ASKED, messages=[user(text)], tools=[beta_tool(weather)], stream=streamed, **more
        )
        return text_of(runner.until_done())


def converse(place: Place, texts: list[str], streamed: bool) -> list[str]:
    messages: list[dict[str, Any]] = []
    answers = []
    for text in texts:
        messages.append(user(text))
        answers.append(turn(place, messages, streamed))
    return answers


def turn(place: Place, messages: list[dict[str, Any]], streamed: bool) -> str:
    """Ask until it is said in words; the messages have grown by what was said."""
    while True:
        said = answer(place, messages, streamed)
        messages.append({"role": "assistant", "content": said.content})
        if said.stop_reason != "tool_use":
            return text_of(said)
        messages.append(results(said))


def answer(place: Place, messages: list[dict[str, Any]], streamed: bool) -> Message:
    with client(place) as anthropic:
        if not streamed:
            return anthropic.messages.create(**ASKED, messages=messages, tools=[TOOL])
        with anthropic.messages.stream(**ASKED, messages=messages, tools=[TOOL]) as told:
            return told.get_final_message()


def results(said: Message) -> dict[str, Any]:
    return user(
        [
            {
                "type": "tool_result",
                "tool_use_id": block.id,
                "content": result_of(block.name, json.dumps(block.input)),
            }
            for block in said.content
            if block.type == "tool_use"
        ]
    )


def results_alone(place: Place, text: str) -> str:
    """The tool loop of an application that sends nothing twice."""
    messages = [user(text)]
    while True:
        said = answer(place, messages, False)
        if said.stop_reason != "tool_use":
            return text_of(said)
        messages = [results(said)]


def extract(place: Place, text: str) -> Any:
    with client(place) as anthropic:
        said = anthropic.messages.create(
            **ASKED,
            messages=[user(text)],
            tools=[PERSON],
            tool_choice={"type": "tool", "name": "person"},
        )
    return said.content[0].input


def headers(place: Place, text: str) -> dict[str, str]:
    with client(place) as anthropic:
        raw = anthropic.messages.with_raw_response.create(**ASKED, messages=[user(text)])
    return {name.lower(): value for name, value in raw.headers.items()}


serve(say, stream, tools, threads, converse, results_alone, extract, headers)
