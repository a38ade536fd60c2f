"""Cross-origin requests from browsers, for the origins that the configuration names, if any.

Answers preflight requests.  Other answers get the headers that let a page read them, in place of
the upstream's CORS headers.  Requests without ``Origin`` pass unchanged.  Fetch standard, 3.2 (CORS
protocol).  Wraps one ASGI application, in the same task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from proxy.errors import RawHeaders
from proxy.gateway.request import Scope
from proxy.wire.body import Message, Receive
from proxy.wire.headers import get
from proxy.wire.relay import Delivery, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_AGE_SECONDS = 600

_EXPOSED = b"*"
_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_CORS = b"access-control-"


class Cors:
    """``origins`` are allowed; ``*`` allows all, without credentials of the browser's own."""

    def __init__(self, application: Application, origins: tuple[str, ...]) -> None:
        self.inner = application
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = get(scope["headers"], b"origin") if scope["type"] == "http" else None
        if origin is None:
            return await self.inner(scope, receive, send)
        grant = self._grant(origin) if self._allows(origin) else []
        if scope["method"] == "OPTIONS" and get(scope["headers"], _CORS + b"request-method"):
            return await self._preflight(scope, grant, send)

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*_without_cors(message["headers"]), *grant]
            await send(message)

        await self.inner(scope, receive, readable)

    def _allows(self, origin: bytes) -> bool:
        return origin in self._origins or b"*" in self._origins

    def _grant(self, origin: bytes) -> RawHeaders:
        return [
            (_CORS + b"allow-origin", origin),
            (_CORS + b"expose-headers", _EXPOSED),
            (b"vary", b"Origin"),
        ]

    async def _preflight(self, scope: Scope, grant: RawHeaders, send: Send) -> None:
        """Answer a preflight of any origin: the upstream would answer for its own address."""
        if grant:
            asked = get(scope["headers"], _CORS + b"request-headers") or b"*"
            grant = [
                *grant,
                (_CORS + b"allow-methods", _METHODS),
                (_CORS + b"allow-headers", asked),
                (_CORS + b"max-age", b"%d" % MAX_AGE_SECONDS),
            ]
        delivery = Delivery(send)
        await delivery.start(204, grant)
        await delivery.end()


def _without_cors(headers: RawHeaders) -> RawHeaders:
    """The headers without the upstream's CORS headers, which are for its own address."""
    return [field for field in headers if not field[0].lower().startswith(_CORS)]
