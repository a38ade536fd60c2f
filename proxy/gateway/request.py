"""One request to the relay, as it goes through the gateway."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial
from typing import Any

import msgspec

from proxy.errors import ProxyError, RawHeaders
from proxy.gateway.aside import Aside
from proxy.gateway.identity import Identity
from proxy.gateway.report import MemoryReport
from proxy.gateway.routes import Route
from proxy.memory.model import SessionKey
from proxy.settings import ServerSettings
from proxy.tenancy import Caller
from proxy.upstreams.destination import Destination
from proxy.wire import body as bodies
from proxy.wire.body import Receive
from proxy.wire.coding.decoding import IDENTITY, coding_of, decoded
from proxy.wire.headers import content_length
from proxy.wire.origin import Origin
from proxy.wire.places import SMALL, Holding
from proxy.wire.relay import Delivery

Scope = MutableMapping[str, Any]


class ProxyRequest(msgspec.Struct):
    """What came in (``method`` to ``receive``) and who it is from, once that is known."""

    method: str
    route: Route
    query: bytes
    headers: RawHeaders
    receive: Receive
    delivery: Delivery
    caller: Caller
    identity: Identity
    held: Holding
    report: MemoryReport | None
    """What memory did, as far as it is known; None without a session."""
    destination: Destination | None
    """Which of several upstreams it goes to; None is [upstream]."""
    fetches: bool
    """May the answer be that of an exchange which is recorded without one?"""
    may_be_named: bool
    """May an id in its body name its session?"""
    with_state: bool
    """May what the proxy keeps for upstreams be asked for?"""
    by_id: bool
    """By an id alone, with no session?"""
    model: str | None = None
    origin: Origin | None = None
    """Where the upstream is that was asked last."""
    upstream_seconds: float = 0.0
    """How long the heads of the upstream's answers took."""

    async def body(self, limits: ServerSettings) -> bytes:
        """The whole body.  Raises ProxyError 408, 413 and 503, and ClientGone."""
        declared = content_length(self.headers)
        most, timeout = limits.max_body_bytes, limits.body_timeout
        return await bodies.read(self.receive, most, timeout, declared, self.held.body)

    async def plain(self, body: bytes, limits: ServerSettings, aside: Aside) -> bytes | None:
        """The body without its content coding, None where that is not known.  Room is taken for a
        small result first: a little may become a lot.  Raises ProxyError 413 and 503."""
        coding, most = coding_of(self.headers), limits.max_body_bytes
        if coding == IDENTITY:
            return body
        try:
            return await self._unpacked(body, coding, min(SMALL, most), aside)
        except ProxyError as error:
            if error.code != "request_too_large" or most <= SMALL:
                raise
        return await self._unpacked(body, coding, most, aside)

    async def _unpacked(self, body: bytes, coding: bytes, most: int, aside: Aside) -> bytes | None:
        await self.held.body(max(len(body), most))
        found = await aside.run(most, partial(decoded, body, coding, most))
        await self.held.body(max(len(body), len(found or b"")))
        return found

    async def answer(self, body: bytes) -> None:
        """Answer with JSON of the proxy's own."""
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        report = self.report.headers() if self.report else []
        await self.delivery.start(200, [*headers, *report])
        await self.delivery.end(body)

    @property
    def key(self) -> SessionKey:
        """Of a request that has a session."""
        assert self.identity.session is not None
        return SessionKey(self.caller.tenant, self.identity.session)

    @property
    def target(self) -> bytes:
        """Path and query for the upstream."""
        return self.route.target + b"?" + self.query if self.query else self.route.target

    @property
    def upstream(self) -> str:
        """The name of that upstream, "" for [upstream]."""
        return self.destination.name if self.destination else ""

    @property
    def remembers(self) -> bool:
        """Is this a chat completion with memory?"""
        return self.identity.remembers and self.method == "POST" and self.route.chat
