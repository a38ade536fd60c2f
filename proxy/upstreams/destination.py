"""One of [[upstreams]], and the headers and query that are sent to it.

Clients' own keys are sent only to [upstream] and to upstreams with ``client_keys``; an upstream's
key is sent to no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote_to_bytes

from proxy.errors import RawHeaders
from proxy.tenancy import CREDENTIALS
from proxy.wire.api import bearer
from proxy.wire.headers import get
from proxy.wire.upstream import Upstream

Kind = Literal["openai", "anthropic", "azure"]

COOKIE = b"cookie"
"""Not forwarded: the client would send one upstream's cookies to all of them."""

BILLING_HEADERS = CREDENTIALS | {b"x-goog-api-key", b"openai-organization", b"openai-project"}
"""Headers with a client's key or account."""

QUERY_KEYS = frozenset({b"key", b"api_key", b"api-key", b"access_token"})
"""The same in queries."""

CHAT = "chat/completions"
VERSION = b"anthropic-version"
DEFAULT_VERSION = b"2023-06-01"
"""The version of Anthropic's API if the client sends none."""


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """An upstream.  ``models`` are globs; ``extra_headers`` are the operator's headers, names in
    lower case.

    ``key`` is for ``allowed`` paths; named clients have their own list.  ``kind``: in which header
    the API has its key.  ``max_concurrent``: concurrent requests of a tenant, 0 is no bound.
    """

    name: str
    upstream: Upstream
    models: tuple[str, ...] = ()
    kind: Kind = "openai"
    key: str | None = field(default=None, repr=False)
    allowed: tuple[str, ...] = ()
    client_keys: bool = False
    max_concurrent: int = 0
    extra_headers: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)

    def headers(self, sent: RawHeaders, api: str) -> RawHeaders:
        """The request headers to send; ``api`` is the path's name, ``chat/completions``."""
        refused = {COOKIE, *(name for name, _ in self.extra_headers)}
        if not self.client_keys:
            refused |= BILLING_HEADERS
        kept = [each for each in sent if each[0].lower() not in refused]
        if self.kind == "anthropic" and api != CHAT and get(kept, VERSION) is None:
            kept.append((VERSION, DEFAULT_VERSION))
        return [*kept, *self._credential(api), *self.extra_headers]

    def query(self, sent: bytes) -> bytes:
        """The query to send: without keys, unless the upstream accepts clients' keys."""
        if self.client_keys or not sent:
            return sent
        return b"&".join(part for part in sent.split(b"&") if not _holds_key(part))

    @property
    def query_for_models(self) -> bytes:
        """The query to list all models: Anthropic's default is twenty."""
        return b"limit=1000" if self.kind == "anthropic" else b""

    def _credential(self, api: str) -> RawHeaders:
        """The header with the key; Anthropic's chat completions use OpenAI's."""
        if self.key is None or self.kind == "openai" or (self.kind == "anthropic" and api == CHAT):
            return bearer(self.key)
        return [(b"x-api-key" if self.kind == "anthropic" else b"api-key", self.key.encode())]


def _holds_key(part: bytes) -> bool:
    return unquote_to_bytes(part.partition(b"=")[0]).lower() in QUERY_KEYS
