"""/mcp: credentials, origin and limits of a request.  Knows HTTP; must not know the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from proxy.errors import ProxyError
from proxy.gateway.identity import Aliases, IdentityReader
from proxy.mcp.errors import origin_not_allowed
from proxy.mcp.visit import Visit
from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.body import body_of
from proxy.memory_api.endpoint import Endpoint
from proxy.telemetry import Telemetry
from proxy.wire.hosts import Trusted
from proxy.wire.limits import RequestLimit

PATH = "/mcp"
MAX_BODY_BYTES = 256 * 1024
"""Limit on a request's body: its longest argument, a query, has 1000 characters."""

Answer = Callable[[Visit, bytes], Awaitable[Response]]


class PostHandler:
    """Handles POST for callers that the memory API would accept."""

    def __init__(self, api: Api, answer: Answer) -> None:
        server, tenancy = api.settings.server, api.settings.tenancy
        self._api, self._access, self._answer = api, Access(api), answer
        self._trusted = Trusted.of(server.cors_origins, tenancy.trusted_hosts)
        self._reader = IdentityReader(Aliases.of(server.session_aliases, server.user_aliases))
        self._places = RequestLimit(api.settings.mcp.max_concurrent_calls)
        limit = min(MAX_BODY_BYTES, server.max_body_bytes)
        self._limits = server.model_copy(update={"max_body_bytes": limit})

    async def post(self, request: Request) -> Response:
        """The answer to one message of a client.

        Raises ProxyError 403 for a web page that is not trusted (MCP 2025-11-25, transports,
        security warning), 503 for too many concurrent calls, and those of the memory API for
        credentials and bodies.
        """
        headers = request.headers.raw
        if not self._trusted.admits(headers):
            raise origin_not_allowed()
        tenant = self._access.tenant(request)
        visit = Visit(self._api, self._access, request, self._reader.identify(headers))
        held = self._api.byte_budgets.reserve_for(request.scope, tenant)
        with self._places.slot(tenant):
            return await self._answer(visit, await body_of(request, self._limits, held))


def mcp_route(api: Api, answer: Answer) -> BaseRoute:
    """The route.  GET and DELETE get 405, as the specification demands of a server without streams
    and without sessions of the protocol."""
    return Endpoint(PATH, {"POST": PostHandler(api, answer).post}, api.telemetry, "mcp")


def closed_route(why: Callable[[], ProxyError], telemetry: Telemetry) -> BaseRoute:
    """A route in its place that answers with the error ``why``."""

    async def refuse(request: Request) -> Response:
        raise why()

    return Endpoint(PATH, dict.fromkeys(("GET", "POST", "DELETE"), refuse), telemetry, "mcp")
