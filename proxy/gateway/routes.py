"""Which requests are the relay's, and where each goes upstream.  Pure.

``/v1/X`` is ``{upstream}/X``; so are Azure's ``/openai/v1/X`` and, as its own client asks for files
and responses beside deployments, ``/openai/X``, chats apart: these have a deployment, or a base_url
that lacks /v1.  ``/s/{session}`` may stand before any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import unquote_to_bytes

import msgspec

from proxy.errors import ProxyError
from proxy.formats.chat_completions import ChatCompletions
from proxy.formats.format import Format
from proxy.formats.messages.errors import error_body
from proxy.formats.messages.messages import Messages, TokenCount
from proxy.formats.responses.api import Responses
from proxy.recall.lexicon.folding import normalized

_PATH = re.compile(
    rb"(?:/s/(?P<session>[^/]*))?(?P<api>/v1|/openai/v1|/openai(?!/v1$|/chat/))(?P<rest>/.*)",
    re.DOTALL,
)
_SLASHES = re.compile(r"[/\\]")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f?#%]")
"""Characters that a fully decoded path must not have: controls, query, fragment, encoding."""
_MAX_DECODINGS = 8
"""How often a path is decoded at most, as long as that changes it."""
_STORED_RESPONSE = re.compile(r"responses/[^/]+")
_SHARED_PATHS = (
    (re.compile(r"messages/batches(/.*)?"), frozenset[str]()),
    (re.compile(r"chat/completions|completions|messages|responses"), frozenset({"POST"})),
    (re.compile(r"models(/.*)?"), frozenset({"GET", "HEAD", "POST"})),
)
"""Paths that list or remove objects of all clients who share a key, and the methods that do not;
see ``Route.allowed_by``."""
_FIRST_APIS = ("chat/completions", "models")
"""The first requests of clients, by which a base_url that lacks /v1 is recognised."""
MAX_CACHED_PATH = 1024
"""Bytes; results are cached only for shorter paths: anyone may send paths of up to 64 KiB."""
_DEPLOYMENT = re.compile(rb"^/deployments/[^/]+(?=/)")


APIS = frozenset(
    {
        *("assistants", "audio", "batches", "chat", "completions", "containers", "conversations"),
        *("embeddings", "evals", "files", "fine_tuning", "images", "messages", "models"),
        *("moderations", "realtime", "rerank", "responses", "score", "threads", "uploads"),
        *("vector_stores", "videos"),
    }
)
"""First segments of paths that may be logged; the rest of a path may hold ids."""


FORMATS: Mapping[str, Format] = {
    "chat/completions": ChatCompletions(),
    "messages": Messages(),
    "messages/count_tokens": TokenCount(),
    "responses": Responses(),
    "responses/input_tokens": Responses(records=False),
}
"""The APIs with memory, by ``Route.name``."""

ERRORS: Mapping[str, Callable[[ProxyError], bytes]] = {"messages": error_body}
"""Writers of error bodies, by a path's first segment; other APIs use OpenAI's shape."""


class Route(msgspec.Struct, frozen=True):
    """``session`` is the percent-encoded segment of the path, if any.  ``target`` is the path
    upstream, ``prefix`` the part before it in the proxy's path.  ``name`` is the path without
    version and deployment: ``chat/completions``."""

    session: bytes | None
    prefix: bytes
    target: bytes
    name: str

    @property
    def format(self) -> Format | None:
        """The format of its requests; None if memory does not support this API."""
        return FORMATS.get(self.name)

    @property
    def is_chat(self) -> bool:
        return self.name in FORMATS

    def error(self, error: ProxyError) -> bytes:
        """The body of a ProxyError in the shape of this API."""
        write = ERRORS.get(self.name.partition("/")[0])
        return error.body if write is None else write(error)

    @property
    def is_stored_response(self) -> bool:
        """Whether it is the path of one response, which may be a background response."""
        return _STORED_RESPONSE.fullmatch(self.name) is not None

    @property
    def api(self) -> str:
        """The API's name for logs, without ids."""
        first = self.name.partition("/")[0]
        return self.name if self.is_chat else first if first in APIS else "..."

    def allowed_by(self, method: str, entries: tuple[str, ...]) -> bool:
        """Whether one of these entries allows the path: an entry is a path, which also allows all
        below it (``models/gpt-4o``), or a method and a path (``GET files``).

        ``_SHARED_PATHS`` are only allowed by an entry with their method, or if they are shared for
        all methods, by an entry with the path itself.  False for a path with dot segments, however
        encoded: an upstream might resolve them.
        """
        is_allowed = _cached_is_allowed if len(self.target) <= MAX_CACHED_PATH else _is_allowed
        return is_allowed(self.target, self.name, method, entries)


def _is_allowed(target: bytes, name: str, method: str, entries: tuple[str, ...]) -> bool:
    if _may_traverse(target):
        return False
    resolved = _resolved(name)
    shared_paths = [
        (pattern, open_methods)
        for pattern, open_methods in _SHARED_PATHS
        if method not in open_methods and pattern.fullmatch(resolved)
    ]
    return any(
        entry_method in ("", method)
        and _is_below(name, path)
        and all(
            entry_method if open_methods else pattern.fullmatch(path)
            for pattern, open_methods in shared_paths
        )
        for entry_method, _, path in (entry.rpartition(" ") for entry in entries)
    )


_cached_is_allowed = lru_cache(maxsize=1024)(_is_allowed)


def _resolved(name: str) -> str:
    """The name as an upstream reads it that decodes it and tolerates additional slashes."""
    segments = _SLASHES.split(_decoded(name.encode("latin-1")) or "")
    names = (segment.partition(";")[0].strip().lower() for segment in segments)
    return "/".join(filter(None, names))


def _is_below(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/")


def _may_traverse(target: bytes) -> bool:
    """Whether an upstream that decodes a path, once or repeatedly, might resolve it elsewhere."""
    decoded = _decoded(target)
    if decoded is None or _FORBIDDEN.search(decoded):
        return True
    if any(segment.partition(";")[0].strip() in (".", "..") for segment in _SLASHES.split(decoded)):
        return True
    deployment = _DEPLOYMENT.match(target)
    return deployment is not None and len(_SLASHES.split(_decoded(deployment[0]) or "")) > 3


def _decoded(path: bytes) -> str | None:
    """The path decoded until that changes nothing; None if it is not UTF-8, or too deep."""
    for _ in range(_MAX_DECODINGS):
        before, path = path, unquote_to_bytes(path)
        if path == before:
            try:
                return normalized(path.decode())
            except UnicodeDecodeError:  # overlong forms among them
                return None
    return None


def route(raw_path: bytes) -> Route | None:
    """The route of a percent-encoded path; None if it is not the relay's."""
    return _cached_route(raw_path) if len(raw_path) <= MAX_CACHED_PATH else _route(raw_path)


def _route(raw_path: bytes) -> Route | None:
    match = _PATH.fullmatch(raw_path)
    if match is None:
        return None
    target: bytes = match["rest"]
    name = _DEPLOYMENT.sub(b"", target, count=1).strip(b"/").decode("latin-1")
    return Route(match["session"], raw_path[: match.start("rest")], target, name)


_cached_route = lru_cache(maxsize=1024)(_route)


def api_without_v1(raw_path: bytes) -> str | None:
    """The API that a path without /v1 is meant for: the client's base_url lacks it.  Else None.

    Paths of the memory API never count: they may end with any id.
    """
    if raw_path.startswith(b"/memory/") or route(raw_path) is not None:
        return None
    return next((api for api in _FIRST_APIS if raw_path.endswith(b"/" + api.encode())), None)
