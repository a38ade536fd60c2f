"""The pretended model as an upstream: what it says, over HTTP."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Thread
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from proxy.chat.models.tokens import Tokenizers
from proxy.demo.apis import APIS, NAME, Api, Json, Used
from proxy.demo.model import answer, answer_anybody, writes
from proxy.server import address_of, embedded_config, listen
from proxy.settings import DEMO, ServerSettings, Settings

SECONDS = 5.0
"""For the demo's own server to end, once nobody asks it any more."""

STATELESS = (
    "The demo's model keeps no responses and no conversations. The proxy keeps them for it, once it"
    " is started with MEMORY_PROXY_MEMORY__EMULATE_RESPONSE_STATE=true in its environment."
)

Answering = Callable[[Sequence[Json], Sequence[Json]], Json]


class PretendedUpstream:
    """Answers in each of its APIs; ``received`` holds the messages of the app's last request."""

    def __init__(self, answering: Answering = answer) -> None:
        self.received: Sequence[Json] = ()
        self._answering = answering
        self._tokenizers = Tokenizers()
        self._routes = Starlette(
            routes=[
                *(Route(each.path, partial(self._chat, each), methods=["POST"]) for each in APIS),
                Route("/v1/models", _models),
                Route("/{path:path}", _nothing, methods=["GET", "POST", "PUT", "DELETE", "PATCH"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._routes(scope, receive, send)

    async def _chat(self, api: Api, request: Request) -> Response:
        try:
            body = json.loads(await request.body())
            messages, tools = api.heard(body), body.get("tools") or ()
            said = self._answering(messages, tools)
            used = self._used(body, messages, said)
            goes_on = body.get("previous_response_id") or body.get("conversation")
        except (ValueError, LookupError, TypeError, AttributeError):
            wanted = "a JSON object with its messages, or input"
            return _refused(400, f"The body is no request for {api.path}: {wanted}.")
        if api.path == "/v1/responses" and goes_on:
            return _refused(404, STATELESS)
        if not writes(messages):
            self.received = messages
        name = f"{api.prefix}{uuid4().hex}"  # some clients tell answers apart by it
        if body.get("stream"):
            return StreamingResponse(api.events(said, name, used), media_type="text/event-stream")
        return JSONResponse(api.whole(said, name, used))

    def _used(self, body: Json, messages: Sequence[Json], said: Json) -> Used:
        count = self._tokenizers.counter_for(body.get("model")).count
        streamed = (body.get("stream_options") or {}).get("include_usage") is True
        return Used(sum(map(count, messages)), count(said), streamed)


async def _models(request: Request) -> Response:
    model = {"id": NAME, "object": "model", "created": 0, "owned_by": "memory-proxy"}
    return JSONResponse({"object": "list", "data": [model]})


async def _nothing(request: Request) -> Response:
    if request.path_params["path"].startswith(("v1/responses/", "v1/conversations")):
        return _refused(404, STATELESS)
    known = ", ".join(each.path for each in APIS)
    return _refused(404, f"The demo's model knows {known} and /v1/models alone.")


def _refused(status: int, sentence: str) -> Response:
    error = {"message": sentence, "type": "invalid_request_error", "param": None, "code": DEMO}
    return JSONResponse({"error": error}, status)


@contextmanager
def standing_in(settings: Settings) -> Iterator[Settings]:
    """The settings with the pretended model as their upstream, which serves while the block runs.

    It has a thread and a free port of loopback.  Raises ServerError if no port can be had.
    """
    with listen(ServerSettings(port=0)) as listener:
        server = uvicorn.Server(
            embedded_config(PretendedUpstream(answer_anybody), 1, lifespan="off")
        )
        thread = Thread(target=server.run, args=([listener],), name=DEMO, daemon=True)
        lines = logging.getLogger("uvicorn.error")
        lines.addFilter(_is_of_the_proxy)
        thread.start()
        try:
            yield settings.with_upstream_url(f"{address_of(listener)}/v1")
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            lines.removeFilter(_is_of_the_proxy)


def _is_of_the_proxy(record: logging.LogRecord) -> bool:
    """Else the log would say twice that a server starts and ends."""
    return record.threadName != DEMO
