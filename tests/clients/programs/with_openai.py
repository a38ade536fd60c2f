"""The official SDK, synchronous, with the tool loop and the history that an application writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from application import KEY, MODEL, WEATHER, Place, result_of, serve
from openai import OpenAI
from openai.types.chat import ChatCompletionMessage


def client(place: Place) -> OpenAI:
    return OpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(place: Place, text: str) -> str | None:
    with client(place) as openai:
        answer = openai.chat.completions.create(model=MODEL, messages=[user(text)])
    return answer.choices[0].message.content


def stream(place: Place, text: str) -> Iterator[str]:
    with client(place) as openai:
        for chunk in openai.chat.completions.create(
            model=MODEL, messages=[user(text)], stream=True
        ):
            yield chunk.choices[0].delta.content or ""


def tools(place: Place, text: str, streamed: bool) -> str | None:
    return turn(place, [user(text)], streamed)


def converse(place: Place, texts: list[str], streamed: bool) -> list[str | None]:
    messages: list[dict[str, Any]] = []
    answers = []
    for text in texts:
        messages.append(user(text))
        answers.append(turn(place, messages, streamed))
    return answers


def turn(place: Place, messages: list[dict[str, Any]], streamed: bool) -> str | None:
    """Ask until it is said in words; the messages have grown by what was said."""
    while True:
        said = answer(place, messages, streamed)
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            content = result_of(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def answer(place: Place, messages: list[dict[str, Any]], streamed: bool) -> ChatCompletionMessage:
    asked: dict[str, Any] = {"model": MODEL, "messages": messages, "tools": [WEATHER]}
    with client(place) as openai:
        if not streamed:
            return openai.chat.completions.create(**asked).choices[0].message
        with openai.chat.completions.stream(**asked) as events:
            return events.get_final_completion().choices[0].message


def results_alone(place: Place, text: str) -> str | None:
    """The tool loop of an application that sends nothing twice."""
    messages = [user(text)]
    while True:
        said = answer(place, messages, False)
        if not said.tool_calls:
            return said.content
        messages = [
            {
                "role": "tool",
                "tool_call_id": call.id,
                "content": result_of(call.function.name, call.function.arguments),
            }
            for call in said.tool_calls
        ]


def headers(place: Place, text: str) -> dict[str, str]:
    with client(place) as openai:
        raw = openai.chat.completions.with_raw_response.create(model=MODEL, messages=[user(text)])
    return {name.lower(): value for name, value in raw.headers.items()}


serve(say, stream, tools, converse, results_alone, headers)
