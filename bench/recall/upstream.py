"""The scripted upstream: answers as recorded, and keeps the prompts of the questions.

``X-Bench-Answer`` names the answer to give.  Without it the request is a question: its messages are
kept under ``X-Bench-Question``, and it is refused, so that nothing of it is recorded.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bench.serving import posts

ANSWER, QUESTION = "X-Bench-Answer", "X-Bench-Question"


class Scripted:
    """``url`` once it runs."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, str] = {}
        self.prompts: dict[str, list[dict[str, Any]]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Scripted]:
        async with posts({"/v1/chat/completions": self._answer}) as self.url:
            yield self

    async def _answer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        name = request.headers.get(ANSWER)
        if name is None:
            self.prompts[request.headers[QUESTION]] = body["messages"]
            refusal = {"message": "this was only a question", "type": "invalid_request_error"}
            return web.json_response({"error": refusal}, status=400)
        message = {"role": "assistant", "content": self.answers.pop(name)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "mock"}
        return web.json_response({**answer, "choices": [choice]})
