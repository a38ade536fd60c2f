"""/mcp: who may come in, and with how much.  Knows HTTP; must not know the protocol."""

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
from proxy.settings import ServerSettings
from proxy.telemetry import Telemetry
from proxy.wire.hosts import Trusted
from proxy.wire.places import Places

PATH = "/mcp"
MOST_BYTES = 256 * 1024
"""Of a request: a fact has 500 characters, and all else is shorter still."""

Answer = Callable[[Visit, bytes], Awaitable[Response]]


class Door:
    """Lets in whoever the memory API would let in."""

    def __init__(self, api: Api, answer: Answer) -> None:
        server, tenancy = api.settings.server, api.settings.tenancy
        self._api, self._access, self._answer = api, Access(api), answer
        self._trusted = Trusted.of(server.cors_origins, tenancy.trusted_hosts)
        self._reader = IdentityReader(_aliases(server))
        self._places = Places(api.settings.mcp.max_concurrent_calls)
        most = min(MOST_BYTES, server.max_body_bytes)
        self._limits = server.model_copy(update={"max_body_bytes": most})

    async def post(self, request: Request) -> Response:
        """The answer to one message of a client.

        Raises ProxyError 403 for a page that is not trusted (MCP 2025-11-25, transports, security
        warning), all that the memory API has for credentials and bodies, 503 for too many at once.
        """
        headers = request.headers.raw
        if not self._trusted.admits(headers):
            raise origin_not_allowed()
        tenant = self._access.tenant(request)
        visit = Visit(self._api, self._access, request, self._reader.identify(headers))
        held = self._api.rooms.held_by(request.scope, tenant)
        with self._places.one(tenant):
            return await self._answer(visit, await body_of(request, self._limits, held))


def mcp_route(api: Api, answer: Answer) -> BaseRoute:
    """There is nothing to be had with GET and DELETE, since there are no streams and no sessions of
    the protocol's own: 405, as the specification asks."""
    return Endpoint(PATH, {"POST": Door(api, answer).post}, api.telemetry, "mcp")


def closed_route(why: Callable[[], ProxyError], telemetry: Telemetry) -> BaseRoute:
    """In the place of it: says why there is none."""

    async def refuse(request: Request) -> Response:
        raise why()

    return Endpoint(PATH, dict.fromkeys(("GET", "POST", "DELETE"), refuse), telemetry, "mcp")


def _aliases(server: ServerSettings) -> Aliases:
    session = tuple(name.lower().encode() for name in server.session_aliases)
    return Aliases(session, tuple(name.lower().encode() for name in server.user_aliases))
