"""Where the upstream is and how it is reached: options, request targets, TLS, egress proxy.

Values and pure functions; the clients do the I/O.
"""

from __future__ import annotations

import functools
import re
import ssl
from os import PathLike
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

KEEP_ALIVE_SECONDS = 30.0
"""How long an idle connection to the upstream is kept."""


class UpstreamOptions(msgspec.Struct, frozen=True):
    """How to reach one upstream.

    ``url`` is its base, ``https://api.openai.com/v1``; its own path and query stay part of every
    request.  ``connect_timeout`` bounds name, TCP and TLS together, ``read_timeout`` one silence
    (not the whole answer); both in seconds.  ``ca_file`` (PEM) replaces the system's authorities.
    ``proxy`` is an HTTP proxy on the way out, credentials in its URL; without it ``trust_env``
    lets ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` say so.  ``.netrc`` is never read.
    Raises ValueError where no request could ever succeed.
    """

    url: str
    connect_timeout: float = 5.0
    read_timeout: float = 600.0
    trust_env: bool = False
    ca_file: str | PathLike[str] | None = None
    proxy: str | None = None

    def __post_init__(self) -> None:
        _split(self.url, "the upstream's URL")
        if urlsplit(self.url).username is not None:
            raise ValueError("the upstream's URL cannot hold credentials: send an API key instead")
        if self.proxy is not None:
            _split(self.proxy, "the egress proxy's URL")
        if min(self.connect_timeout, self.read_timeout) <= 0:
            raise ValueError("the upstream's timeouts must be larger than 0")


_DOTS = re.compile(rb"/(?:\.|%2e){1,2}(?:[/;]|\Z)", re.IGNORECASE)
"""Dot segments, which clients resolve (RFC 3986 5.2.4)."""


class Origin(msgspec.Struct, frozen=True):
    """A parsed base URL."""

    site: str
    """Scheme, host and port: ``https://api.openai.com``."""
    host: bytes
    """The value of ``Host`` (RFC 9110 7.2)."""
    path: bytes
    """Without a trailing slash."""
    query: bytes

    @classmethod
    def of(cls, url: str) -> Origin:
        parts = _split(url, "the upstream's URL")
        return cls(
            site=f"{parts.scheme}://{parts.netloc}",
            host=parts.netloc.encode("ascii"),
            path=parts.path.rstrip("/").encode("ascii"),
            query=parts.query.encode("ascii"),
        )

    def target(self, raw: bytes) -> bytes:
        """The request target for ``raw``, a path with its query; nothing is decoded or encoded.
        Raises ValueError unless ``raw`` begins with a slash: it must never reach into the host."""
        if not raw.startswith(b"/"):
            raise ValueError("a request target begins with a slash")
        if b"#" in raw:  # fragments are never sent (RFC 9110 4.2.5), so it is part of the path
            raw = raw.replace(b"#", b"%23")
        if not self.query:
            return self.path + raw
        path, _, query = raw.partition(b"?")
        return self.path + path + b"?" + self.query + (b"&" + query if query else b"")

    def below(self, location: bytes) -> bytes | None:
        """The part of a ``Location`` after the base URL; None if it is not below it, or has dot
        segments.  The base URL's query is removed, since ``target`` adds it again.

        ``location`` is a URL, or an absolute path (RFC 9110 10.2.2).
        """
        size = len(self.site)
        is_absolute = location[:size].lower() == self.site.lower().encode("ascii")
        path = location[size:] if is_absolute else location
        if not path.startswith(self.path + b"/") or location.startswith(b"//"):
            return None
        path, mark, query = path[len(self.path) :].partition(b"?")
        if _DOTS.search(path):
            return None
        if self.query and (query + b"&").startswith(self.query + b"&"):
            query = query[len(self.query) + 1 :]
        return path + (mark + query if query else b"")


def _split(url: str, label: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{label} must begin with http:// or https:// and name a host")
    if parts.fragment or not url.isascii() or any(char.isspace() for char in url):
        raise ValueError(f"{label} must be ASCII, without spaces or a fragment")
    parts.port  # noqa: B018 - a port that is no number raises ValueError here
    return parts


def tls(options: UpstreamOptions) -> ssl.SSLContext:
    """The TLS to the upstream and to an ``https`` egress proxy.  Raises OSError on a bad file."""
    if options.ca_file is None:
        return _system_tls()
    return ssl.create_default_context(cafile=options.ca_file)


@functools.cache
def _system_tls() -> ssl.SSLContext:
    """Shared by all upstreams: reading the system's certificates takes 30 ms."""
    return ssl.create_default_context()


def egress_proxy(options: UpstreamOptions) -> str | None:
    """The URL of the proxy on the way out, or None."""
    if options.proxy is not None or not options.trust_env:
        return options.proxy
    parts = urlsplit(options.url)
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
