"""instructor: structured answers by tool call."""

from __future__ import annotations

from typing import Any

import instructor
from application import KEY, MODEL, Place, serve
from openai import OpenAI
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str


def extract(place: Place, text: str) -> Any:
    with OpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers) as openai:
        person = instructor.from_openai(openai).chat.completions.create(
            model=MODEL, response_model=Person, messages=[{"role": "user", "content": text}]
        )
    return person.model_dump()


def say(place: Place, text: str) -> Any:
    """Its client without a model of the answer is the SDK's own."""
    with OpenAI(base_url=place.url, api_key=KEY, default_headers=place.headers) as openai:
        answer = instructor.from_openai(openai).chat.completions.create(
            model=MODEL, response_model=None, messages=[{"role": "user", "content": text}]
        )
    return answer.choices[0].message.content


serve(say, extract)
