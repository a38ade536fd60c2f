"""An upstream client on aiohttp; also used for egress proxies.

Default headers, redirects, decompression and cookies of aiohttp are switched off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from proxy.errors import RawHeaders
from proxy.wire.body import PIECE, Body, in_pieces
from proxy.wire.failures import (
    UpstreamBroken,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
    as_saturated,
)
from proxy.wire.origin import KEEP_ALIVE_SECONDS, Origin, UpstreamOptions, egress_proxy, tls
from proxy.wire.reply import WholeReply

MAX_HEADER_BYTES = 128 * 1024
MAX_HEADERS = 1024

_SKIPPED: CIMultiDict[None] = CIMultiDict({"Content-Type": None})
"""Headers that aiohttp would add for a body."""


class _Request(aiohttp.ClientRequest):
    """A request without aiohttp's default headers."""

    def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:
        self._skip_auto_headers = _SKIPPED

    def update_body_from_data(self, body: Any, _stacklevel: int = 3) -> None:
        # aiohttp sends ``Content-Length: 0`` for methods like POST; None must send no framing.
        if body is not None:
            super().update_body_from_data(body, _stacklevel)


class AiohttpUpstream:
    """See ``upstream.Upstream``."""

    def __init__(self, options: UpstreamOptions) -> None:
        self._options = options
        self.origin = Origin.of(options.url)
        self._session: aiohttp.ClientSession | None = None
        self._proxy = egress_proxy(options)
        self.exchanges = 0

    def __repr__(self) -> str:
        state = "closed" if self._session is None else f"{self.exchanges} exchanges"
        return f"<AiohttpUpstream {self.origin.site} {state}>"

    async def open(self) -> None:
        options = self._options
        connect = options.connect_timeout
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=tls(options)
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=connect, sock_connect=connect, sock_read=options.read_timeout
            ),
            trust_env=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(
        self,
        method: str,
        target: bytes,
        headers: RawHeaders,
        body: Body,
        content_length: int | None = None,
    ) -> AiohttpReply:
        url = URL(self.origin.site + self.origin.target(target).decode("ascii"), encoded=True)
        self.exchanges += 1
        try:
            return AiohttpReply(self, await self._send(method, url, headers, body, content_length))
        except BaseException:
            self.exchanges -= 1
            raise

    async def _send(
        self, method: str, url: URL, headers: RawHeaders, body: Body, content_length: int | None
    ) -> aiohttp.ClientResponse:
        fields = _aiohttp_headers(headers)
        if body is None or (isinstance(body, bytes) and len(body) <= PIECE):
            return await self._request(method, url, fields, body)
        length = len(body) if isinstance(body, bytes) else content_length
        if length is not None:
            fields.add("Content-Length", str(length))
        upload = _Upload(body, self._options.read_timeout)
        try:
            async with asyncio.timeout(None) as upload.timeout:
                return await self._request(method, url, fields, upload.pieces())
        except (UpstreamError, TimeoutError) as failure:
            if upload.failure is not None:
                raise upload.failure from None
            if isinstance(failure, TimeoutError):
                raise UpstreamTimeout("the upstream takes no more of the body") from failure
            raise
        finally:
            upload.timeout = None

    async def _request(
        self, method: str, url: URL, fields: CIMultiDict[str], data: Body
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("open() the upstream before sending")
        try:
            return await self._session.request(
                method, url, headers=fields, data=data, allow_redirects=False, proxy=self._proxy
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _error_before_answer(error) from error


class _Upload:
    """A streamed request body with a timeout of ``seconds`` for sending each piece."""

    def __init__(self, body: bytes | AsyncIterator[bytes], seconds: float) -> None:
        self._source = in_pieces(body) if isinstance(body, bytes) else body
        self._seconds = seconds
        self.timeout: asyncio.Timeout | None = None
        self.failure: Exception | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        try:
            async for piece in self._source:
                self._wait_until(loop.time() + self._seconds)
                yield piece
                self._wait_until(None)
        except Exception as error:  # the iterator's; aiohttp would report a connection error
            self.failure = error
            raise

    def _wait_until(self, when: float | None) -> None:
        if self.timeout is not None:
            self.timeout.reschedule(when)


class AiohttpReply(WholeReply):
    """See ``upstream.Reply``."""

    def __init__(self, upstream: AiohttpUpstream, response: aiohttp.ClientResponse) -> None:
        self._upstream: AiohttpUpstream | None = upstream
        self._response = response
        self.status = response.status
        self.headers: RawHeaders = list(response.raw_headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        content = self._response.content
        try:
            while chunk := await content.readany():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            # Bytes received before the failure: public methods raise the error instead.
            if rest := content._read_nowait(-1):
                yield rest
            raise _error_in_answer(error) from error

    async def close(self) -> None:
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            upstream.exchanges -= 1
            self._response.close()


def _aiohttp_headers(headers: RawHeaders) -> CIMultiDict[str]:
    """aiohttp drops a repeated name in another case, so all get the case of the first."""
    fields: CIMultiDict[str] = CIMultiDict()
    spelling: dict[bytes, str] = {}
    for name, value in headers:
        key = spelling.setdefault(name.lower(), name.decode("ascii"))
        fields.add(key, _text(value))
    return fields


def _text(value: bytes) -> str:
    """The value as text, which aiohttp encodes as UTF-8; obsolete Latin-1 values change."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _error_before_answer(error: Exception) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout("no answer in time")
    if saturation := as_saturated(error):
        return saturation
    proxied = isinstance(error, aiohttp.ClientHttpProxyError)
    if isinstance(error, (aiohttp.ClientResponseError, aiohttp.ClientPayloadError)) and not proxied:
        return UpstreamBroken("the answer is not HTTP")
    return UpstreamUnreachable("no answer")


def _error_in_answer(error: Exception) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return UpstreamTimeout("the answer stopped")
    return UpstreamBroken("the answer was cut off")
