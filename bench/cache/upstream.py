"""The upstream: answers, and counts what its providers' caches would have read and written.

``X-Bench-Row`` says whose cache it is, and ``X-Bench-Turn`` which answer is to be given.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bench.cache.prompt import Count, Json, prompt_of
from bench.cache.rules import Cache, Refused, Used
from bench.serving import posts

ROW, TURN = "X-Bench-Row", "X-Bench-Turn"


class Simulated:
    """``url`` once it runs.  ``used`` is what each row's requests have used, in order."""

    def __init__(self, caches: Mapping[str, Cache], answers: Sequence[str], count: Count) -> None:
        self._caches, self._answers, self._count = caches, answers, count
        self._counted: dict[str, int] = {}
        self.url = ""
        self.used: dict[str, list[Used]] = {name: [] for name in caches}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Simulated]:
        handlers = {"/v1/chat/completions": self._chat, "/v1/messages": self._messages}
        async with posts(handlers) as self.url:
            yield self

    async def _chat(self, request: web.Request) -> web.Response:
        used, text = await self._asked(request)
        if used is None:
            return _refusal(text)
        details = {"cached_tokens": used.read, "cache_write_tokens": used.written}
        usage = {"prompt_tokens": used.prompt, "completion_tokens": self._tokens(text)}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        said = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m"}
        usage |= {"total_tokens": sum(usage.values())}
        return web.json_response(
            {**said, "choices": [choice], "usage": {**usage, "prompt_tokens_details": details}}
        )

    async def _messages(self, request: web.Request) -> web.Response:
        used, text = await self._asked(request)
        if used is None:
            return _refusal(text)
        usage = {
            "input_tokens": used.prompt - used.read - used.written,
            "cache_read_input_tokens": used.read,
            "cache_creation_input_tokens": used.written,
            "output_tokens": self._tokens(text),
        }
        said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        content = [{"type": "text", "text": text}]
        ended = {"stop_reason": "end_turn", "stop_sequence": None}
        return web.json_response({**said, "content": content, **ended, "usage": usage})

    async def _asked(self, request: web.Request) -> tuple[Used | None, str]:
        """What a request uses and its answer; None for one that is refused, and why."""
        body: Json = json.loads(await request.read())
        row = request.headers[ROW]
        try:
            used = self._caches[row].ask(prompt_of(body, self._tokens))
        except Refused as refused:
            return None, str(refused)
        self.used[row].append(used)
        return used, self._answers[int(request.headers[TURN])]

    def _tokens(self, text: str) -> int:
        if text not in self._counted:
            self._counted[text] = self._count(text)
        return self._counted[text]


def _refusal(why: str) -> web.Response:
    error: dict[str, Any] = {"type": "invalid_request_error", "message": why}
    return web.json_response({"type": "error", "error": error}, status=400)
