"""To the upstream and back, unchanged but for what ends at a proxy."""

from __future__ import annotations

import time

from proxy.errors import RawHeaders, unknown_upstream
from proxy.gateway.identity import without_ours
from proxy.gateway.request import ProxyRequest
from proxy.settings.upstreams import DEFAULT
from proxy.telemetry import Failing, Telemetry
from proxy.tenancy import Tenancy
from proxy.upstreams.destination import Destination
from proxy.wire import body as bodies
from proxy.wire.body import Body, ClientGone
from proxy.wire.failures import UpstreamBroken
from proxy.wire.headers import DIGESTS, content_length, end_to_end, get
from proxy.wire.relay import Presence, relay
from proxy.wire.replies import is_event_stream
from proxy.wire.upstream import Reply, Upstream

CHANGED = DIGESTS | {b"content-encoding"}
"""Headers that tell of the client's body and are untrue of ours, which has no content coding."""

_CODED = frozenset({b"accept-encoding"})
_DROPPED: dict[tuple[bool, bool], frozenset[bytes]] = {
    (False, False): frozenset(),
    (False, True): _CODED,
    (True, False): CHANGED,
    (True, True): CHANGED | _CODED,
}
"""What does not go upstream, by whether the body is ours and whether the answer is read."""


_BODILESS = (204, 304)
_LENGTH = frozenset({b"content-length"})
"""Has no place in such an answer (RFC 9110 8.6, 15.4.5): our server would wait for the bytes."""


class Passthrough:
    """Sends calls upstream and answers alone, with no memory of them.

    There is one upstream; ``Dispatch`` knows several.
    """

    def __init__(self, upstream: Upstream, tenancy: Tenancy, telemetry: Telemetry) -> None:
        self._upstream, self._tenancy, self._telemetry = upstream, tenancy, telemetry

    def named(self, name: str) -> Destination | None:
        """The upstream that a client names; None is [upstream].  Raises ProxyError 400."""
        if name != DEFAULT:
            raise unknown_upstream()
        return None

    def choose(self, call: ProxyRequest, model: str | None) -> None:
        """Choose the upstream of a call whose body has been read."""

    async def serve(self, call: ProxyRequest) -> None:
        """Pass a call through, its body streaming where it does not come in one piece."""
        first = await call.receive()
        if first["type"] == "http.disconnect":
            raise ClientGone
        if first.get("more_body", False):
            streamed = bodies.stream(call.receive, first)
            declared = content_length(call.headers)
            return await self._relay(call, await self.ask(call, streamed, length=declared))
        await self.forward(call, as_declared(call, first.get("body", b"")))

    async def forward(self, call: ProxyRequest, body: bytes | None) -> None:
        """Pass a call through whose body is here."""
        with Presence(call.receive) as presence:
            call.delivery.presence = presence
            await self._relay(call, await self.ask(call, body))

    async def ask(
        self,
        call: ProxyRequest,
        body: Body,
        *,
        length: int | None = None,
        rewritten: bool = False,
    ) -> Reply:
        """Send a call upstream with this body; ``length``: of one that is streamed, if declared.

        ``rewritten``: the body is ours, and so is what must be read.
        """
        headers = _outgoing(call, rewritten=rewritten)
        destination = call.destination
        call.origin = (destination.upstream if destination else self._upstream).origin
        clock = time.perf_counter()
        reply = await self._send(call, headers, body, length)
        waited = time.perf_counter() - clock
        call.upstream_seconds += waited
        self._telemetry.first_byte(waited)
        if failure := failure_in(reply.status):
            self._telemetry.upstream_failed(failure)
        return await _sound(reply)

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


def as_declared(call: ProxyRequest, body: bytes) -> bytes | None:
    """The body to pass on: an empty one that was declared is declared again, another is none."""
    if body or content_length(call.headers) is not None:
        return body
    return body if get(call.headers, b"transfer-encoding") else None


def failure_in(status: int) -> Failing | None:
    """What has failed, by the status of an upstream's answer; None where nothing has."""
    if status == 429:
        return "rate_limited"
    return "server_error" if status >= 500 else None


async def _sound(reply: Reply) -> Reply:
    """Raises UpstreamBroken where it has a status that no answer can have (RFC 9110 15)."""
    if 200 <= reply.status < 600:
        return reply
    await reply.close()
    raise UpstreamBroken(f"the answer has the status {reply.status}")


def _outgoing(call: ProxyRequest, *, rewritten: bool) -> RawHeaders:
    """The headers that go upstream.  An answer that memory reads is asked for without a content
    coding (RFC 9110 12.5.3)."""
    read = call.remembers or call.fetches
    headers = without_ours(end_to_end(call.headers, _DROPPED[rewritten, read]))
    return [*headers, (b"accept-encoding", b"identity")] if read else headers


def answer_headers(reply: Reply, call: ProxyRequest) -> RawHeaders:
    """The upstream's end-to-end headers, and what memory did where there is a session."""
    dropped, report = _LENGTH if reply.status in _BODILESS else frozenset(), call.report
    headers = end_to_end(reply.headers, dropped, response=True)
    if reply.status == 201 or 300 <= reply.status < 400:
        headers = [_here(field, call) for field in headers]
    if report is None:
        return headers
    headers = [field for field in headers if not field[0].lower().startswith(b"x-memory-")]
    headers += report.headers()
    if is_event_stream(headers):
        headers += _unbuffered(headers)
    return headers


def _here(field: tuple[bytes, bytes], call: ProxyRequest) -> tuple[bytes, bytes]:
    """A ``Location`` below the upstream's URL as the path that leads there through the proxy: who
    followed it as it is would leave memory behind, and hand its key to whoever is at that host."""
    name, value = field
    behind = call.origin.below(value) if call.origin and name.lower() == b"location" else None
    return field if behind is None else (name, call.route.prefix + behind)


def _unbuffered(headers: RawHeaders) -> RawHeaders:
    """Tell reverse proxies in front of us to pass a stream on as it comes."""
    hints = ((b"x-accel-buffering", b"no"), (b"cache-control", b"no-cache"))
    return [hint for hint in hints if get(headers, hint[0]) is None]
