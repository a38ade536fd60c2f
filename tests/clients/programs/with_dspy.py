"""DSPy, without its cache: that would answer in place of the model."""

from __future__ import annotations

from typing import Any

import dspy
from application import KEY, MODEL, Place, serve


def model(place: Place) -> dspy.LM:
    return dspy.LM(
        f"openai/{MODEL}",
        api_base=place.url,
        api_key=KEY,
        extra_headers=place.headers,
        cache=False,
        num_retries=0,
    )


def say(place: Place, text: str) -> Any:
    return model(place)(text)[0]


def converse(place: Place, texts: list[str], streamed: bool) -> list[Any]:
    """With messages of its own; DSPy streams only what has a signature."""
    assert not streamed
    kept, messages, answers = model(place), [], []
    for text in texts:
        messages.append({"role": "user", "content": text})
        answers.append(kept(messages=messages)[0])
        messages.append({"role": "assistant", "content": answers[-1]})
    return answers


serve(say, converse)
