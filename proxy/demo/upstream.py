"""The upstream of the demo: an OpenAI-compatible API as a small ASGI application."""

from __future__ import annotations

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from proxy.demo.model import Json, answer, completion, events, writes


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
