"""Which requests are the relay's, and where each goes upstream.  Pure.

``/v1/X`` is ``{upstream}/X``; so are Azure's ``/openai/v1/X``, and ``/openai/deployments/...``
below ``{upstream}``.  ``/s/{session}`` may stand before any of them.
"""

from __future__ import annotations

import re
import unicodedata
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

_PATH = re.compile(
    rb"(?:/s/(?P<session>[^/]*))?(?P<api>/v1|/openai/v1|/openai(?=/deployments/))(?P<rest>/.*)",
    re.DOTALL,
)
_STEPS = re.compile(r"[/\\]")
_FOREIGN = re.compile(r"[\x00-\x1f\x7f?#%]")
"""What no path has, once it is decoded: a query, an end, another layer of encoding."""
_LAYERS = 8
"""Encodings upon encodings that are undone."""
_FETCHED = re.compile(r"responses/[^/]+")
_MEANT = ("chat/completions", "models")
"""What clients ask for first, also those whose base_url lacks /v1."""
_DEPLOYMENT = re.compile(rb"^/deployments/[^/]+(?=/)")


APIS = frozenset(
    {
        *("assistants", "audio", "batches", "chat", "completions", "containers", "conversations"),
        *("embeddings", "evals", "files", "fine_tuning", "images", "messages", "models"),
        *("moderations", "realtime", "rerank", "responses", "score", "threads", "uploads"),
        *("vector_stores", "videos"),
    }
)
"""What paths are known to begin with.  The rest of a path may name somebody."""


FORMATS: Mapping[str, Format] = {
    "chat/completions": ChatCompletions(),
    "messages": Messages(),
    "messages/count_tokens": TokenCount(),
    "responses": Responses(),
    "responses/input_tokens": Responses(records=False),
}
"""The APIs that have memory, by what their paths are for."""

ERRORS: Mapping[str, Callable[[ProxyError], bytes]] = {"messages": error_body}
"""How APIs write an error, by what their paths begin with; the others do as OpenAI does."""


class Route(msgspec.Struct, frozen=True):
    """``session`` is the encoded segment of the path, if any; ``target`` the path upstream, and
    ``prefix`` what stands before it here; ``name`` what the path is for, without version and
    deployment: ``chat/completions``."""

    session: bytes | None
    prefix: bytes
    target: bytes
    name: str

    @property
    def format(self) -> Format | None:
        """What its requests are written in, where memory can be put into them."""
        return FORMATS.get(self.name)

    @property
    def chat(self) -> bool:
        return self.name in FORMATS

    def error(self, error: ProxyError) -> bytes:
        """The body of an error of the proxy's own, as the clients of this API read it."""
        write = ERRORS.get(self.name.partition("/")[0])
        return error.body if write is None else write(error)

    @property
    def fetched(self) -> bool:
        """Does it name an answer that was made in the background?"""
        return _FETCHED.fullmatch(self.name) is not None

    @property
    def api(self) -> str:
        """Which API that is, with no ids: for logs."""
        first = self.name.partition("/")[0]
        return self.name if self.chat else first if first in APIS else "..."

    def allowed_by(self, names: tuple[str, ...]) -> bool:
        """Is the path one of these, or below one (``models/gpt-4o``)?

        One that climbs out again is none, however it is spelled: an upstream might follow it.
        """
        if _climbs(self.target):
            return False
        return any(self.name == name or self.name.startswith(f"{name}/") for name in names)


def _climbs(target: bytes) -> bool:
    """Could an upstream that decodes a path once or often be led to another place by it?"""
    plain = _decoded(target)
    if plain is None or _FOREIGN.search(plain):
        return True
    if any(step.partition(";")[0].strip() in (".", "..") for step in _STEPS.split(plain)):
        return True
    deployment = _DEPLOYMENT.match(target)
    return deployment is not None and len(_STEPS.split(_decoded(deployment[0]) or "")) > 3


def _decoded(path: bytes) -> str | None:
    """The path with nothing left to decode, None where it is no text or goes on for too long."""
    for _ in range(_LAYERS):
        before, path = path, unquote_to_bytes(path)
        if path == before:
            try:
                return unicodedata.normalize("NFKC", path.decode())
            except UnicodeDecodeError:  # overlong forms among them
                return None
    return None


@lru_cache(maxsize=1024)
def route(raw_path: bytes) -> Route | None:
    """The route of a path as it came, still encoded; None if it is not the relay's."""
    found = _PATH.fullmatch(raw_path)
    if found is None:
        return None
    target: bytes = found["rest"]
    name = _DEPLOYMENT.sub(b"", target, count=1).strip(b"/").decode("latin-1")
    return Route(found["session"], raw_path[: found.start("rest")], target, name)


def misses_v1(raw_path: bytes) -> str | None:
    """Which API a client means whose base_url lacks /v1; ids of the memory API may end in any
    way."""
    if raw_path.startswith(b"/memory/") or route(raw_path) is not None:
        return None
    return next((api for api in _MEANT if raw_path.endswith(b"/" + api.encode())), None)
