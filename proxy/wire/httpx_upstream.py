"""An upstream client on httpx, whose pure-Python stack is easier to debug.

Uses httpx's transport instead of its client, to have no cookies, redirects, default headers or
environment variables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import h11
import httpx

from proxy.errors import RawHeaders
from proxy.wire.body import Body
from proxy.wire.failures import (
    UpstreamBroken,
    UpstreamError,
    UpstreamSaturated,
    UpstreamTimeout,
    UpstreamUnreachable,
    as_saturated,
)
from proxy.wire.origin import KEEP_ALIVE_SECONDS, Origin, UpstreamOptions, egress_proxy, tls
from proxy.wire.reply import WholeReply


class HttpxUpstream:
    """See ``upstream.Upstream``."""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options
        self.origin = Origin.of(options.url)
        self._timeout = {
            "connect": options.connect_timeout,
            "read": options.read_timeout,
            "write": options.read_timeout,
            "pool": options.connect_timeout,
        }
        self._transport: httpx.AsyncHTTPTransport | None = None
        self.exchanges = 0

    def __repr__(self) -> str:
        state = "closed" if self._transport is None else f"{self.exchanges} exchanges"
        return f"<HttpxUpstream {self.origin.site} {state}>"

    async def open(self) -> None:
        context = tls(self._options)
        proxy = egress_proxy(self._options)
        self._transport = httpx.AsyncHTTPTransport(
            verify=context,
            trust_env=False,
            # Unlimited both: httpcore compares idle connections with all of them, and would close
            # every finished one beyond a smaller limit (encode/httpcore#1000).
            limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS),
            proxy=None if proxy is None else _proxy(proxy, self._options),
        )

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: Body,
        content_length: int | None = None,
    ) -> HttpxReply:
        request = httpx.Request(
            method,
            self.origin.site,
            headers=[(b"Host", self.origin.host), *headers, *_framing(body, content_length)],
            stream=_Body(body),
            extensions={"timeout": self._timeout},
        )
        request.url = _Url(self.origin.site, self.origin.target(target))
        self.exchanges += 1
        try:
            return HttpxReply(self, await self._send(request))
        except BaseException:
            self.exchanges -= 1
            raise

    async def _send(self, request: httpx.Request) -> httpx.Response:
        if self._transport is None:
            raise RuntimeError("open() the upstream before sending")
        try:
            return await self._transport.handle_async_request(request)
        except (httpx.HTTPError, h11.LocalProtocolError, OSError) as error:
            raise _error_before_answer(error) from error


class _Url(httpx.URL):
    """A URL whose target is sent as it is.  httpx's ``target`` extension would also replace the
    target of ``CONNECT`` and the absolute target that a proxy needs.
    """

    def __init__(self, site: str, target: bytes) -> None:
        super().__init__(site)
        self._target = target

    @property
    def raw_path(self) -> bytes:
        return self._target


class _Body(httpx.AsyncByteStream):
    """A body without framing of its own, which is in the headers."""

    def __init__(self, body: Body) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if isinstance(self._body, bytes):
            yield self._body
        elif self._body is not None:
            async for piece in self._body:
                yield piece


class HttpxReply(WholeReply):
    """See ``upstream.Reply``."""

    def __init__(self, upstream: HttpxUpstream, response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._upstream: HttpxUpstream | None = upstream
        self._stream = response.stream
        self.status = response.status_code
        self.headers: RawHeaders = response.headers.raw

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except (httpx.HTTPError, OSError) as error:
            raise _error_in_answer(error) from error

    async def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.exchanges -= 1
            await self._stream.aclose()


def _framing(body: Body, length: int | None) -> RawHeaders:
    if body is None:
        return []
    if isinstance(body, bytes):
        length = len(body)
    if length is not None:
        return [(b"Content-Length", b"%d" % length)]
    return [(b"Transfer-Encoding", b"chunked")]


def _proxy(url: str, options: UpstreamOptions) -> httpx.Proxy:
    secure = url.startswith("https:")
    return httpx.Proxy(url, ssl_context=tls(options) if secure else None)


def _error_before_answer(error: Exception) -> UpstreamError:
    if saturation := as_saturated(error):
        return saturation
    if isinstance(error, httpx.PoolTimeout):
        return UpstreamSaturated("no connection of the pool is free")
    if isinstance(error, httpx.TimeoutException):
        return UpstreamTimeout("no answer in time")
    dropped = "disconnected without sending" in str(error)
    broken = isinstance(error, (httpx.ProtocolError, h11.LocalProtocolError))
    if broken and not dropped:
        return UpstreamBroken("the answer is not HTTP")
    return UpstreamUnreachable("no answer")


def _error_in_answer(error: Exception) -> UpstreamError:
    if isinstance(error, httpx.TimeoutException):
        return UpstreamTimeout("the answer stopped")
    return UpstreamBroken("the answer was cut off")
