"""Relays calls to the upstream; only hop-by-hop and memory headers are changed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from proxy.errors import RawHeaders, unknown_upstream
from proxy.gateway.identity import without_memory_headers
from proxy.gateway.request import ProxyRequest
from proxy.settings.upstreams import DEFAULT
from proxy.telemetry import Failing, Telemetry
from proxy.tenancy import Tenancy
from proxy.upstreams.destination import Destination
from proxy.wire import body as bodies
from proxy.wire.body import Body, ClientGone
from proxy.wire.failures import UpstreamBroken
from proxy.wire.headers import DIGESTS, content_length, end_to_end, get, without_controls
from proxy.wire.relay import relay
from proxy.wire.replies import is_event_stream
from proxy.wire.upstream import Reply, Upstream

CHANGED = DIGESTS | {b"content-encoding"}
"""Headers that describe the client's body and are wrong for one that we rewrote."""

_CODING = frozenset({b"accept-encoding"})
_DROPPED: dict[tuple[bool, bool], frozenset[bytes]] = {
    (False, False): frozenset(),
    (False, True): _CODING,
    (True, False): CHANGED,
    (True, True): CHANGED | _CODING,
}
"""Request headers to drop, by (the body is rewritten, the answer is read by memory)."""


_BODILESS = (204, 304)
_LENGTH = frozenset({b"content-length"})
"""Dropped from answers without a body (RFC 9110 8.6, 15.4.5): uvicorn would expect the bytes."""


class Passthrough:
    """Relays calls without memory to the only upstream; ``Dispatch`` chooses among several."""

    def __init__(self, upstream: Upstream, tenancy: Tenancy, telemetry: Telemetry) -> None:
        self._upstream, self._tenancy, self._telemetry = upstream, tenancy, telemetry

    def upstream_named(self, name: str) -> Destination | None:
        """The upstream with this name; None is [upstream].  Raises ProxyError 400 if unknown."""
        if name != DEFAULT:
            raise unknown_upstream()
        return None

    def choose(self, call: ProxyRequest, model: str | None) -> None:
        """Set the upstream of a call by its model."""

    async def serve(self, call: ProxyRequest) -> None:
        """Relay a call; its body is streamed unless it has arrived in one piece."""
        first = await call.receive()
        if first["type"] == "http.disconnect":
            raise ClientGone
        if first.get("more_body", False):
            return await self._upload(call, bodies.stream(call.receive, first))
        await self.forward(call, body_to_forward(call, first.get("body", b"")))

    async def _upload(self, call: ProxyRequest, body: AsyncIterator[bytes]) -> None:
        with call.guard(uploading=True) as guard:
            declared = content_length(call.headers)
            reply = await self.send_upstream(call, guard.watch_after(body), length=declared)
            await self._relay(call, reply)

    async def forward(self, call: ProxyRequest, body: bytes | None) -> None:
        with call.guard():
            await self._relay(call, await self.send_upstream(call, body))

    async def send_upstream(
        self, call: ProxyRequest, body: Body, *, length: int | None = None, rewritten: bool = False
    ) -> Reply:
        """Send a call upstream.  ``length`` is the declared length of a streamed body.

        ``rewritten``: the body is not the client's, so that its headers about it are dropped.
        """
        headers = _request_headers(call, rewritten=rewritten)
        destination = call.destination
        call.origin = (destination.upstream if destination else self._upstream).origin
        start = time.perf_counter()
        reply = await self._send(call, headers, body, length)
        seconds = time.perf_counter() - start
        call.upstream_seconds += seconds
        self._telemetry.observe_first_byte(seconds)
        if failure := failure_of_status(reply.status):
            self._telemetry.count_upstream_failure(failure)
        return await _check_status(reply)

    async def _send(
        self, call: ProxyRequest, headers: RawHeaders, body: Body, length: int | None
    ) -> Reply:
        headers = self._tenancy.credentials_upstream(headers, call.caller)
        return await self._upstream.send(call.method, call.target, headers, body, length)

    async def _relay(self, call: ProxyRequest, reply: Reply) -> None:
        try:
            await call.delivery.start(reply.status, answer_headers(reply, call))
            bodiless = call.method == "HEAD" or reply.status in _BODILESS
            length = None if bodiless else content_length(reply.headers)
            await relay(reply, call.delivery, length)
        finally:
            await reply.close()


def body_to_forward(call: ProxyRequest, body: bytes) -> bytes | None:
    """The body to forward: b"" only if the client declared an empty body, else None."""
    if body or content_length(call.headers) is not None:
        return body
    return body if get(call.headers, b"transfer-encoding") else None


def failure_of_status(status: int) -> Failing | None:
    """The failure that an upstream's status means; None if none."""
    if status == 429:
        return "rate_limited"
    return "server_error" if status >= 500 else None


async def _check_status(reply: Reply) -> Reply:
    """The reply; closed and UpstreamBroken raised for an impossible status (RFC 9110 15)."""
    if 200 <= reply.status < 600:
        return reply
    await reply.close()
    raise UpstreamBroken(f"the answer has the status {reply.status}")


def _request_headers(call: ProxyRequest, *, rewritten: bool) -> RawHeaders:
    """The request headers for the upstream.  Answers that memory reads are requested without a
    content coding (RFC 9110 12.5.3)."""
    reads_answer = call.uses_memory or call.may_fetch_response
    headers = without_memory_headers(end_to_end(call.headers, _DROPPED[rewritten, reads_answer]))
    return [*headers, (b"accept-encoding", b"identity")] if reads_answer else headers


def answer_headers(reply: Reply, call: ProxyRequest) -> RawHeaders:
    """The upstream's end-to-end headers, and the report's if the call has a session."""
    dropped, report = _LENGTH if reply.status in _BODILESS else frozenset(), call.report
    headers = without_controls(end_to_end(reply.headers, dropped, response=True))
    if reply.status == 201 or 300 <= reply.status < 400:
        headers = [_location_of_proxy(field, call) for field in headers]
    if report is None:
        return headers
    headers = [field for field in headers if not field[0].lower().startswith(b"x-memory-")]
    headers += report.headers()
    if is_event_stream(headers):
        headers += _no_buffering_headers(headers)
    return headers


def _location_of_proxy(field: tuple[bytes, bytes], call: ProxyRequest) -> tuple[bytes, bytes]:
    """The field; a ``Location`` below the upstream's URL becomes a path of the proxy, so that the
    client does not send its key to another host, and its next request without memory."""
    name, value = field
    path = call.origin.below(value) if call.origin and name.lower() == b"location" else None
    return field if path is None else (name, call.route.prefix + path)


def _no_buffering_headers(headers: RawHeaders) -> RawHeaders:
    """Headers that keep reverse proxies in front of us from buffering a stream."""
    hints = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))
    return [hint for hint in hints if get(headers, hint[0]) is None]
