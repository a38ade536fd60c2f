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
_OF_ALL = (
    (re.compile(r"messages/batches(/.*)?"), frozenset[str]()),
    (re.compile(r"chat/completions|completions|messages|responses"), frozenset({"POST"})),
    (re.compile(r"models(/.*)?"), frozenset({"GET", "HEAD", "POST"})),
)
"""Below paths that are open to each, what lists or removes what is of all who share a key: places,
and the methods that do not.  What remains must be named itself; see ``Route.allowed_by``."""
_MISSED_APIS = ("chat/completions", "models")
"""APIs by which a client is recognised whose base_url lacks /v1: what it requests first."""
MAX_REMEMBERED = 1024
"""Bytes of a path that is remembered as it was read: paths come from anybody, up to 64 KiB long."""
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
    def chat(self) -> bool:
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
        return self.name if self.chat else first if first in APIS else "..."

    def allowed_by(self, method: str, names: tuple[str, ...]) -> bool:
        """Whether the path is one of these or below one (``models/gpt-4o``), and the method that of
        the name, if it has one (``GET files``).  What is ``_OF_ALL`` must be named with its method,
        or where it is so with each by its path.

        False for a path with dot segments, however encoded: an upstream might resolve them.
        """
        is_allowed = _cached_is_allowed if len(self.target) <= MAX_REMEMBERED else _is_allowed
        return is_allowed(self.target, self.name, method, names)


def _is_allowed(target: bytes, name: str, method: str, names: tuple[str, ...]) -> bool:
    if _may_traverse(target):
        return False
    place = _resolved(name)
    shared = [
        (where, own) for where, own in _OF_ALL if method not in own and where.fullmatch(place)
    ]
    return any(
        only in ("", method)
        and _is_below(name, path)
        and all(only if own else where.fullmatch(path) for where, own in shared)
        for only, _, path in (entry.rpartition(" ") for entry in names)
    )


_cached_is_allowed = lru_cache(maxsize=1024)(_is_allowed)


def _resolved(name: str) -> str:
    """A name as an upstream may read it that decodes it and is lenient about slashes."""
    steps = _SLASHES.split(_decoded(name.encode("latin-1")) or "")
    plain = (step.partition(";")[0].strip().lower() for step in steps)
    return "/".join(filter(None, plain))


def _is_below(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}/")


def _may_traverse(target: bytes) -> bool:
    """Whether an upstream that decodes a path, once or repeatedly, might resolve it elsewhere."""
    plain = _decoded(target)
    if plain is None or _FORBIDDEN.search(plain):
        return True
    if any(step.partition(";")[0].strip() in (".", "..") for step in _SLASHES.split(plain)):
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
    return _cached_route(raw_path) if len(raw_path) <= MAX_REMEMBERED else _route(raw_path)


def _route(raw_path: bytes) -> Route | None:
    found = _PATH.fullmatch(raw_path)
    if found is None:
        return None
    target: bytes = found["rest"]
    name = _DEPLOYMENT.sub(b"", target, count=1).strip(b"/").decode("latin-1")
    return Route(found["session"], raw_path[: found.start("rest")], target, name)


_cached_route = lru_cache(maxsize=1024)(_route)


def misses_v1(raw_path: bytes) -> str | None:
    """The API that a client means whose base_url lacks /v1, else None.

    Paths of the memory API never count: they may end with any id.
    """
    if raw_path.startswith(b"/memory/") or route(raw_path) is not None:
        return None
    return next((api for api in _MISSED_APIS if raw_path.endswith(b"/" + api.encode())), None)
