"""The conversation of the demo, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from proxy.demo.model import Json

BRIEF = "brief"
"""The profile with a window so small that a demo can overflow it."""
BRIEF_MESSAGES = 4

SUMMED = "summed"
"""The same window, with a summary of what it leaves out."""

APART = "apart"
"""The profile that sends what is recalled as a message of its own, which is easier to read."""

USER = "kai"

_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@dataclass(frozen=True, slots=True)
class Scene:
    """One request of the application.  ``point`` is what there is to see."""

    title: str
    point: str
    session: str
    messages: tuple[Json, ...]
    tools: tuple[Json, ...] = ()
    stream: bool = True
    profile: str | None = None
    user: str | None = None
    waits_for: Literal["index", "summary"] | None = None
    """What the background has to have done first: nobody types that fast."""


def _user(text: str) -> tuple[Json, ...]:
    return ({"role": "user", "content": text},)


SCENES = (
    Scene(
        title="A conversation begins",
        point="Nothing is remembered yet: the request goes on as it came, byte for byte.",
        session="trip",
        messages=_user("Hi, my name is Kai."),
        user=USER,
    ),
    Scene(
        title="The app sends only what is new",
        point="The proxy puts the conversation in front of it, so the model can know.",
        session="trip",
        messages=_user("What is my name?"),
    ),
    Scene(
        title="Another session",
        point="It has a memory of its own, and nothing of the first one.",
        session="other",
        messages=_user("What is my name?"),
    ),
    Scene(
        title="The model calls a tool",
        point="The call is remembered as it was streamed.",
        session="trip",
        messages=_user("What is the weather in Oslo?"),
        tools=(_WEATHER,),
    ),
    Scene(
        title="The app answers the call, with nothing but the result",
        point="A result is never sent without its call: the proxy puts the call in front.",
        session="trip",
        messages=({"role": "tool", "tool_call_id": "call_1", "content": "Oslo has snow, -4 C"},),
        tools=(_WEATHER,),
        stream=False,
    ),
    Scene(
        title=f"A window of {BRIEF_MESSAGES} messages overflows (X-Memory-Profile: {BRIEF})",
        point="The oldest turns are left out of the prompt, whole turns at a time.",
        session="trip",
        messages=_user("What is my name?"),
        profile=BRIEF,
    ),
    Scene(
        title="With the default window again",
        point="Left out is not forgotten: the history keeps everything.",
        session="trip",
        messages=_user("Once more: what is my name?"),
    ),
    Scene(
        title=f"A week later, a new session of the same user (X-User-Id: {USER})",
        point="Recall finds what this question needs in the user's other sessions.",
        session="next-week",
        messages=_user("Do you still know my name?"),
        profile=APART,
        user=USER,
        waits_for="index",
    ),
    Scene(
        title=f"A window of {BRIEF_MESSAGES} messages with a summary (X-Memory-Profile: {SUMMED})",
        point="What leaves the window stays in the prompt until a summary tells of it.",
        session="trip",
        messages=_user("And now: what is my name?"),
        profile=SUMMED,
    ),
    Scene(
        title="A moment later",
        point="A model has written the summary in the background; no request waited for it.",
        session="trip",
        messages=_user("Do you still know my name?"),
        profile=SUMMED,
        waits_for="summary",
    ),
)
