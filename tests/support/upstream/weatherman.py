"""A model that uses tools: what it answers follows from the prompt alone, so that any client can
ask it in any order.

Asked for the weather by a client with a tool for it, it calls that twice at once, then once more,
and then says it in words.  It fills in a person where structure is wanted, by call or as JSON.
What its calls' ids look like is up to the test: servers differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from tests.support.upstream import anthropic
from tests.support.upstream.answers import (
    Script,
    chat_completion,
    chat_stream,
    json_answer,
    sse,
    tool_call,
)
from tests.support.upstream.connection import Request
from tests.support.upstream.items import as_items, as_messages
from tests.support.upstream.responder import Responder

Ids = Literal["openai", "vllm", "mistral", "empty"]
IDS: dict[Ids, str] = {
    "openai": "call_{:024d}",
    "vllm": "chatcmpl-tool-{:032x}",
    "mistral": "{:09d}",
    "empty": "",
}
CITIES = (("Oslo", "Rome"), ("Bergen",))
"""What it asks for in the first and in the second round."""

SNOW = "It snows."
NAME = re.compile(r"my name is (\w+)", re.IGNORECASE)


@dataclass(slots=True)
class Weatherman:
    """An answer for ``ScriptedUpstream.always``."""

    ids: Ids = "openai"
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _threads: dict[str, dict[str, Any]] = field(default_factory=dict)
    _responses: Responder = field(init=False)

    def __post_init__(self) -> None:
        self._responses = Responder(self._items)

    def __call__(self, request: Request) -> Script:
        body = request.json
        if request.path.endswith("/messages"):
            return self._message(body)
        if not request.path.endswith("/chat/completions"):
            return self._responses(request)
        text, calls = self._answer(body)
        if not body.get("stream"):
            return json_answer(chat_completion(text, tool_calls=calls))
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        pieces = re.findall(r"\S+\s*", text or "")
        return sse(chat_stream(pieces, tool_calls=calls, include_usage=usage))

    def _message(self, body: dict[str, Any]) -> Script:
        """The same over the Messages API."""
        body = self._held(body)
        text, calls = self._answer(anthropic.as_chat(body))
        functions = [(call["function"], call["id"]) for call in calls]
        said = [anthropic.text(text)] if text else []
        said += [
            anthropic.tool_use(f["name"], json.loads(f["arguments"]), id) for f, id in functions
        ]
        answer = anthropic.message(*said, id=f"msg_{len(self._threads)}")
        self._threads[answer["id"]] = {
            **body,
            "messages": [*body["messages"], {"role": "assistant", "content": said}],
        }
        return anthropic.told(answer, stream=bool(body.get("stream")))

    def _held(self, body: dict[str, Any]) -> dict[str, Any]:
        """The conversation that a request goes on with, and the request."""
        thread = body.get("thread") or {}
        if thread.get("type") != "continue":
            return body
        held = self._threads[thread["previous_message_id"]]
        return {**held, **body, "messages": [*held["messages"], *body["messages"]]}

    def _items(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The same in the Responses API."""
        form = (body.get("text") or {}).get("format", {}).get("type", "text")
        said = {
            "messages": as_messages(body["input"]),
            "tools": [{"function": tool} for tool in body.get("tools") or ()],
            "response_format": None if form == "text" else form,
        }
        text, calls = self._answer(said)
        return as_items([{"content": text, "tool_calls": calls}])

    def _answer(self, body: dict[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
        messages = body["messages"]
        offered = [tool["function"]["name"] for tool in body.get("tools") or ()]
        tool = next((name for name in offered if name.endswith("weather")), None)
        if tool and "weather" in question(messages):
            return self._weather(tool, rounds(messages), "final_answer" in offered)
        if offered and not tool:
            return None, [self._call(offered[0], {"name": name_in(messages)})]
        if body.get("response_format"):
            return json.dumps({"name": name_in(messages)}), []
        return spoken(messages), []

    def _weather(
        self, tool: str, done: int, by_call: bool
    ) -> tuple[str | None, list[dict[str, Any]]]:
        if done < len(CITIES):
            return None, [self._call(tool, {"city": city}) for city in CITIES[done]]
        if by_call:
            return None, [self._call("final_answer", {"answer": SNOW})]
        return SNOW, []

    def _call(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return tool_call(name, json.dumps(arguments), IDS[self.ids].format(next(self._numbers)))


def question(messages: list[dict[str, Any]]) -> str:
    """What was asked last; results that a client tells as text are no question."""
    return text_of(messages[_asked_at(messages)])


def rounds(messages: list[dict[str, Any]]) -> int:
    """How many answers there were to it so far."""
    after = messages[_asked_at(messages) :]
    return sum(message["role"] == "assistant" for message in after)


def _asked_at(messages: list[dict[str, Any]]) -> int:
    return max(
        at
        for at, message in enumerate(messages)
        if message["role"] == "user" and not text_of(message).startswith("Observation")
    )


def spoken(messages: list[dict[str, Any]]) -> str:
    if "What is my name?" in text_of(messages[-1]):
        return f"Your name is {name_in(messages)}."
    return "I have noted that."


def name_in(messages: list[dict[str, Any]]) -> str:
    names = NAME.findall("\n".join(text_of(each) for each in messages if each["role"] == "user"))
    return names[-1] if names else "unknown"


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or ())
