"""A pretended language model, which knows what it was sent and nothing else, as a small ASGI
application.

It answers from the messages of the request alone, like a real one: whether it can tell somebody's
name depends on whether the name stands in there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

Json = dict[str, Any]

NAME = "pretend-1"
_MY_NAME = re.compile(r"my name is (\w+)", re.IGNORECASE)
_WEATHER = re.compile(r"Oslo has [\w, -]*C\b")
WRITE = "Write the new summary"
"""What it is asked for in the background; see the setting memory.summary.prompt."""

_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}


def answer(messages: Sequence[Json], tools: Sequence[Json] = ()) -> Json:
    """The assistant message that follows these messages."""
    last = messages[-1]
    text = str(last.get("content") or "")
    if writes(messages):
        return _said(_summary(text))
    if last["role"] == "tool":
        return _said(f"{text}, so take a warm coat.")
    if tools and "weather" in text.lower():
        return {"role": "assistant", "content": None, "tool_calls": [_CALL]}
    name = _name(messages)
    if text.lower().endswith("my name?"):
        return _said(f"Your name is {name}." if name else "I do not know. You have not told me.")
    return _said(f"Nice to meet you, {name}!" if name else "Hello!")


def writes(messages: Sequence[Json]) -> bool:
    """Is it asked for a summary, in the background?"""
    return WRITE in str(messages[-1].get("content"))


def _summary(text: str) -> str:
    """What it makes of the lines of a conversation that it is to summarise."""
    name, weather = _name([{"content": text}]), _WEATHER.search(text)
    told = [f"The human said: my name is {name}."] if name else []
    return " ".join([*told, *([f"They asked for the weather: {weather[0]}."] if weather else [])])


def completion(message: Json) -> Json:
    """The answer as a ``chat.completion``."""
    return _envelope("chat.completion", {"message": message}, _reason(message))


def events(message: Json) -> Iterator[bytes]:
    """The answer as server-sent events, a word each."""
    words = re.findall(r"\S+\s*", message.get("content") or "")
    deltas: list[Json] = [{"role": "assistant", "content": ""}, *({"content": w} for w in words)]
    for call in message.get("tool_calls", ()):
        deltas.append({"tool_calls": [{"index": 0, **call}]})
    for delta in deltas:
        yield _event(_envelope("chat.completion.chunk", {"delta": delta}, None))
    yield _event(_envelope("chat.completion.chunk", {"delta": {}}, _reason(message)))
    yield b"data: [DONE]\n\n"


def said(stream: str) -> Json:
    """The message that a stream of such events amounts to, as an application puts it together."""
    message: Json = {"role": "assistant", "content": ""}
    for line in stream.splitlines():
        if line.startswith("data: {"):
            (choice,) = json.loads(line.removeprefix("data: "))["choices"]
            message["content"] += choice["delta"].get("content") or ""
            if calls := choice["delta"].get("tool_calls"):
                message["tool_calls"] = calls
    return message


def _name(messages: Sequence[Json]) -> str | None:
    for message in reversed(messages):
        found = _MY_NAME.search(str(message.get("content") or ""))
        if found:
            return found[1]
    return None


def _said(text: str) -> Json:
    return {"role": "assistant", "content": text}


def _reason(message: Json) -> str:
    return "tool_calls" if message.get("tool_calls") else "stop"


def _envelope(kind: str, said: Json, reason: str | None) -> Json:
    choice = {"index": 0, **said, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": NAME, "choices": [choice]}


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


class PretendedUpstream:
    """Answers chat completions; ``received`` holds the messages of each request of the app."""

    def __init__(self) -> None:
        self.received: list[list[Json]] = []
        route = Route("/v1/chat/completions", self._chat, methods=["POST"])
        self._routes = Starlette(routes=[route])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._routes(scope, receive, send)

    async def _chat(self, request: Request) -> Response:
        body = json.loads(await request.body())
        if not writes(body["messages"]):
            self.received.append(body["messages"])
        said = answer(body["messages"], body.get("tools", ()))
        if body.get("stream"):
            return StreamingResponse(events(said), media_type="text/event-stream")
        return JSONResponse(completion(said))
