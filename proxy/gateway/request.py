"""One request to the relay, as it goes through the gateway."""

from __future__ import annotations

from collections.abc import MutableMapping
from functools import partial
from typing import Any

import msgspec

from proxy.errors import ProxyError, RawHeaders
from proxy.gateway.identity import Identity
from proxy.gateway.offload import RequestThreads
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
from proxy.wire.limits import SMALL, Reservation
from proxy.wire.origin import Origin
from proxy.wire.relay import Delivery, DisconnectGuard
from proxy.wire.sse import BOM

Scope = MutableMapping[str, Any]


class ProxyRequest(msgspec.Struct):
    """An incoming request (``method`` to ``receive``), its caller, and its state in the gateway."""

    method: str
    route: Route
    query: bytes
    headers: RawHeaders
    receive: Receive
    delivery: Delivery
    caller: Caller
    identity: Identity
    reservation: Reservation
    report: MemoryReport | None
    """What memory has done so far; None without a session."""
    destination: Destination | None
    """The upstream among several; None is [upstream]."""
    may_fetch_response: bool
    """It may fetch a background response, whose exchange is recorded without an answer."""
    may_use_state: bool
    """It may use responses and conversations that the proxy keeps."""
    model: str | None = None
    origin: Origin | None = None
    """The base URL of the upstream that was called last."""
    upstream_seconds: float = 0.0
    """Time to the first byte, summed over all calls of the upstream."""

    async def body(self, limits: ServerSettings) -> bytes:
        """The whole body.  Raises ProxyError 408, 413 and 503, and ClientGone."""
        declared = content_length(self.headers)
        limit, timeout = limits.max_body_bytes, limits.body_timeout
        return await bodies.read(
            self.receive, limit, timeout, declared, self.reservation.reserve_body
        )

    async def decoded_body(
        self, body: bytes, limits: ServerSettings, threads: RequestThreads
    ) -> bytes | None:
        """The body without content coding, and without the byte order mark with which Windows
        begins files; None if the coding is unknown.

        The size is not known before, so room is first taken for a small result, and for the largest
        allowed if that is not enough.  Raises ProxyError 413 and 503.
        """
        coding, limit = coding_of(self.headers), limits.max_body_bytes
        if coding == IDENTITY:
            return body.removeprefix(BOM)
        try:
            return await self._decoded(body, coding, min(SMALL, limit), threads)
        except ProxyError as error:
            if error.code != "request_too_large" or limit <= SMALL:
                raise
        return await self._decoded(body, coding, limit, threads)

    async def _decoded(
        self, body: bytes, coding: bytes, limit: int, threads: RequestThreads
    ) -> bytes | None:
        await self.reservation.reserve_body(max(len(body), limit))
        plain = await threads.run(self.caller.tenant, limit, partial(decoded, body, coding, limit))
        await self.reservation.reserve_body(max(len(body), len(plain or b"")))
        return plain and plain.removeprefix(BOM)

    def guard(self, *, uploading: bool = False) -> DisconnectGuard:
        """A guard against the client's disconnect, for the block that answers this request."""
        guard = self.delivery.guard = DisconnectGuard(self.receive, uploading=uploading)
        return guard

    async def answer(self, body: bytes) -> None:
        """Answer 200 with this JSON."""
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        report = self.report.headers() if self.report else []
        await self.delivery.start(200, [*headers, *report])
        await self.delivery.end(body)

    @property
    def key(self) -> SessionKey:
        """The key of its session, which it must have."""
        assert self.identity.session is not None
        return SessionKey(self.caller.tenant, self.identity.session)

    @property
    def target(self) -> bytes:
        """Path and query for the upstream."""
        return self.route.target + b"?" + self.query if self.query else self.route.target

    @property
    def upstream(self) -> str:
        """The name of its upstream, "" for [upstream]."""
        return self.destination.name if self.destination else ""

    @property
    def uses_memory(self) -> bool:
        """Whether this is a chat completion with memory."""
        return self.identity.uses_memory and self._is_chat

    @property
    def may_use_ids(self) -> bool:
        """Whether it may use kept responses and conversations by their id alone."""
        return self.may_use_state and not self.caller.signs

    @property
    def may_name_session(self) -> bool:
        """Whether an id in its body may name its session."""
        return self.may_use_ids and self.identity.session is None and self._is_chat

    @property
    def _is_chat(self) -> bool:
        return self.method == "POST" and self.route.is_chat
