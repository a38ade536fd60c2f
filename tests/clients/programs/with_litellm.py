"""LiteLLM as a library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import litellm
from application import KEY, MODEL, WEATHER, Place, result_of, serve


def completion(place: Place, messages: list[Any], **more: Any) -> Any:
    return litellm.completion(
        model=f"openai/{MODEL}",
        messages=messages,
        api_base=place.url,
        api_key=KEY,
        extra_headers=place.headers,
        **more,
    )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def say(place: Place, text: str) -> Any:
    return completion(place, [user(text)]).choices[0].message.content


def stream(place: Place, text: str) -> Iterator[str]:
    for chunk in completion(place, [user(text)], stream=True):
        yield chunk.choices[0].delta.content or ""


def tools(place: Place, text: str, streamed: bool) -> Any:
    return turn(place, [user(text)], streamed)


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    messages: list[Any] = []
    answers = []
    for text in texts:
        messages.append(user(text))
        answers.append(turn(place, messages, streamed))
    return answers


def turn(place: Place, messages: list[Any], streamed: bool) -> Any:
    while True:
        answer = completion(place, messages, tools=[WEATHER], stream=streamed)
        if streamed:
            answer = litellm.stream_chunk_builder(list(answer), messages)
        said = answer.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return said.content
        for call in said.tool_calls:
            content = result_of(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


serve(say, stream, tools, converse)
