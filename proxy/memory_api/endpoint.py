"""A route of the proxy's own: matches the raw path, and answers all failures as JSON errors.

Ids in paths are percent-encoded and may contain an encoded slash, so paths are matched before they
are decoded.  Bugs are logged here, once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.datastructures import URLPath
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Message, Receive, Scope, Send

from proxy.errors import (
    ProxyError,
    memory_busy,
    memory_full,
    memory_in_use,
    memory_unavailable,
    method_not_allowed,
    not_found,
    server_error,
)
from proxy.learning.collection import Busy
from proxy.logs import CLIENT_GONE, Access, access, hashed
from proxy.memory.recording.spool import SpoolError
from proxy.memory.store import StoreError, StoreFull, StoreInUse
from proxy.memory_api.access import log_fields
from proxy.memory_api.conditions import READ_METHODS, conditional
from proxy.telemetry import Route as Kind
from proxy.telemetry import Telemetry
from proxy.wire.body import ClientGone, split_message
from proxy.wire.limits import release
from proxy.wire.relay import DisconnectGuard

logger = logging.getLogger(__name__)

T = TypeVar("T")

Handler = Callable[[Request], Awaitable[Response]]

SEND_SECONDS = 60.0
"""Seconds for which a client may not read from an answer."""

_GROUP = re.compile(r"\(\?P<(\w+)>[^)]*\)")


class Endpoint(BaseRoute):
    """``pattern`` is of the raw path; its named groups are ``request.path_params``, still encoded.

    Without handlers there is nothing at the path.
    """

    def __init__(
        self, pattern: str, handlers: Mapping[str, Handler], telemetry: Telemetry, kind: Kind
    ) -> None:
        self._pattern = re.compile(pattern.encode("ascii"), re.DOTALL)
        self._handlers = dict(handlers)
        if "GET" in handlers:
            self._handlers.setdefault("HEAD", handlers["GET"])
        self._telemetry, self._kind = telemetry, kind

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it: ``/sessions/{session}``."""
        return _GROUP.sub(r"{\1}", self._pattern.pattern.decode("ascii"))

    @property
    def methods(self) -> frozenset[str]:
        return frozenset(self._handlers)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match = self._pattern.fullmatch(scope["raw_path"]) if scope["type"] == "http" else None
        if match is None:
            return Match.NONE, {}
        return Match.FULL, {"path_params": match.groupdict()}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        clock = time.perf_counter()
        status, size = CLIENT_GONE, 0

        async def send_counted(message: Message) -> None:
            nonlocal size
            size += len(message.get("body", b""))
            async for part in split_message(message):
                await _send_in_time(send, part)

        try:
            response = await self._answer(Request(scope, receive))
            await response(scope, receive, send_counted)
            status = response.status_code
        except ClientDisconnect:
            pass
        finally:
            release(scope)
            self._telemetry.count_request(self._kind, status, "none")
            if self._kind != "health":  # asked every few seconds, by machines
                ms = (time.perf_counter() - clock) * 1000
                access(self._access_entry(Request(scope), status, ms, size))

    async def _answer(self, request: Request) -> Response:
        try:
            return await with_api_errors(self._run_handler(request))
        except ProxyError as error:
            return refusal(error)

    async def _run_handler(self, request: Request) -> Response:
        if self._kind != "memory" or request.method not in READ_METHODS:
            return await self._handler(request.method)(request)
        with stop_on_disconnect(request):
            return conditional(request, await self._handler(request.method)(request))

    def _handler(self, method: str) -> Handler:
        if not self._handlers:
            raise not_found()
        if method not in self._handlers:
            raise method_not_allowed(", ".join(sorted(self._handlers)))
        return self._handlers[method]

    def _access_entry(self, request: Request, status: int, ms: float, size: int) -> Access:
        caller = log_fields(request)
        return Access(
            request=secrets.token_hex(8),
            method=request.method,
            route=self._kind,
            path=self.template,
            status=status,
            ms=ms,
            memory="none",
            bytes=size,
            by=caller.get("by"),
            tenant=caller.get("tenant"),
            session=_hashed_id(request, "session"),
            user=_hashed_id(request, "user"),
        )


@contextmanager
def stop_on_disconnect(request: Request) -> Iterator[None]:
    """End the block with ClientDisconnect when the client disconnects.

    Only for requests that change nothing and whose body, if any, has been read.
    """
    try:
        with DisconnectGuard(request.receive):
            yield
    except ClientGone:
        raise ClientDisconnect from None


async def _send_in_time(send: Send, part: Message) -> None:
    """Raises ClientDisconnect if a client does not read for too long, since the answer stays in
    memory until then."""
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await send(part)
    except TimeoutError:
        raise ClientDisconnect from None


def _hashed_id(request: Request, part: str) -> str | None:
    value = request.path_params.get(part)
    return hashed(unquote_to_bytes(value).decode("utf-8", "replace")) if value else None


async def with_api_errors(work: Awaitable[T]) -> T:
    """The result of ``work``.  Raises ProxyError for whatever goes wrong with it, and
    ClientDisconnect; a bug is logged here."""
    try:
        return await work
    except (ProxyError, ClientDisconnect):
        raise
    except (StoreError, SpoolError) as failure:
        cause = failure.__cause__
        logger.warning("the memory API cannot use its store: %s", failure, exc_info=cause)
        raise _unavailable(failure) from failure
    except Busy:
        raise memory_busy() from None
    except HTTPException as error:
        raise ProxyError(error.status_code, "invalid_request", error.detail) from None
    except Exception as bug:  # the boundary to the server: a bug is logged here and answered
        logger.exception("a request failed")
        raise server_error() from bug


def _unavailable(failure: StoreError | SpoolError) -> ProxyError:
    match failure:
        case StoreFull():
            return memory_full()
        case StoreInUse():
            return memory_in_use()
        case _:
            return memory_unavailable()


def refusal(error: ProxyError) -> Response:
    response = Response(error.body, error.status)
    response.raw_headers = error.raw_headers
    return response
