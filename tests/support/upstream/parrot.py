"""A model for documentation: it knows what its prompt says of a name, and little else."""

from __future__ import annotations

import re
from typing import Any

from tests.support.upstream import items
from tests.support.upstream.answers import Script, chat_completion, chat_stream, json_answer, sse
from tests.support.upstream.connection import Request

NAME = re.compile(r"my name is (\w+)", re.IGNORECASE)
SUMMARISING = "You keep the running summary"


def model(request: Request) -> Script:
    """What it answers, streamed if asked to; other paths than chat are echoed."""
    body: Any = request.json if isinstance(request.json, dict) else {}
    if "messages" not in body and "input" not in body:
        return json_answer({"object": "echo", "path": request.path})
    text = _answer(request.messages)
    if "input" in body:
        whole = items.response([items.said(text)], store=body.get("store") is not False)
        return sse(items.events(whole)) if body.get("stream") else json_answer(whole)
    if not body.get("stream"):
        return json_answer(chat_completion(text))
    usage = bool((body.get("stream_options") or {}).get("include_usage"))
    return sse(chat_stream(re.findall(r"\S+\s*", text), include_usage=usage))


def _answer(messages: list[dict[str, Any]]) -> str:
    texts = [_text(message) for message in messages]
    asked = [_text(message) for message in messages if message["role"] == "user"]
    if any(text.startswith(SUMMARISING) for text in texts):
        return "The user is called Kai and plans a trip."
    if "What is my name?" not in "".join(asked[-1:]):
        return "Noted."
    names = NAME.findall("\n".join(texts))
    return f"Your name is {names[-1]}." if names else "You have not told me."


def _text(message: Any) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or ())
