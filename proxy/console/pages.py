"""Serves the console's files, which are read once, to anybody.

They contain no data of users: the page asks for a key and calls the memory API with it.  Only
packaged files of known types are served; names are looked up in a table, never in the file system.
Conditional requests: RFC 9110, 13.1.2.
"""

from __future__ import annotations

import functools
import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from proxy import __version__
from proxy.errors import not_found

FOLDER = Path(__file__).parent
PAGE = "index.html"

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The content types of the files that are served, by suffix."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Asked again each time and answered with 304: a new release is there at once.
    "cache-control": "no-cache",
}

WHERE = {
    "name": "memory-proxy",
    "version": __version__,
    "base_url": "v1",
    "console": "memory/",
    "openapi": "memory/v1/openapi.json",
    "health": "readyz",
}


class File(msgspec.Struct, frozen=True):
    """``etag`` is of the content, in quotes."""

    body: bytes
    kind: str
    etag: str

    @classmethod
    def read(cls, path: Path) -> File:
        body = path.read_bytes()
        digest = urlsafe_b64encode(hashlib.sha256(body).digest())[:22].decode()
        return cls(body, KINDS[path.suffix], f'"{digest}"')


class Pages:
    """``/memory/`` and what it loads from ``/memory/console/``."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = files_in(folder)

    async def page(self, request: Request) -> Response:
        return self._answer(PAGE, request)

    async def file(self, request: Request) -> Response:
        """A file by its name in the raw path, as no name of ours is percent-encoded."""
        return self._answer(request.path_params["file"].decode("latin-1"), request)

    async def welcome(self, request: Request) -> Response:
        """The proxy's root: redirects browsers to the console, and tells programs the paths of the
        APIs, relative to the request's."""
        headers = {**HEADERS, "vary": "accept"}
        if "text/html" in request.headers.get("accept", ""):
            return RedirectResponse("memory/", 307, headers)
        return JSONResponse(WHERE, headers=headers)

    async def redirect(self, request: Request) -> Response:
        """Redirect to the folder; relative, so that it works behind a path prefix too."""
        return RedirectResponse("memory/", 308, HEADERS)

    def _answer(self, name: str, request: Request) -> Response:
        file = self._files.get(name)
        if file is None:
            return Response(not_found().body, 404, HEADERS, "application/json")
        headers = {**HEADERS, "etag": file.etag}
        if _named(file.etag, request.headers.get("if-none-match", "")):
            return Response(None, 304, headers)
        return Response(file.body, 200, {**headers, "content-type": file.kind})


@functools.cache
def files_in(folder: Path) -> Mapping[str, File]:
    """All files that are served, by path below the folder; read on first use."""
    return {
        path.relative_to(folder).as_posix(): File.read(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in KINDS
    }


def _named(etag: str, condition: str) -> bool:
    """Weak comparison, as ``If-None-Match`` asks for."""
    tags = {tag.strip().removeprefix("W/") for tag in condition.split(",")}
    return etag in tags or tags == {"*"}
