"""CrewAI's model, with the tool loop that it runs by itself."""

from __future__ import annotations

from typing import Any

from application import KEY, MODEL, Place, serve
from crewai import LLM


def model(place: Place, streamed: bool = False) -> LLM:
    return LLM(
        model=f"openai/{MODEL}",
        base_url=place.url,
        api_key=KEY,
        default_headers=place.headers,
        stream=streamed,
    )


def say(place: Place, text: str) -> Any:
    return model(place).call(text)


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    kept, messages, answers = model(place, streamed), [], []
    for text in texts:
        messages.append({"role": "user", "content": text})
        answers.append(kept.call(messages))
        messages.append({"role": "assistant", "content": answers[-1]})
    return answers


serve(say, converse)
