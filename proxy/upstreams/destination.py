"""One of [[upstreams]], and what of a request may go to it.

A client's own key is for [upstream], unless this one says that it takes clients' keys.  Its own
key goes nowhere else.
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
"""What one upstream has set and a client sends to all: clients know one server only."""

PAYING = CREDENTIALS | {b"x-goog-api-key", b"openai-organization", b"openai-project"}
"""Headers that hold a client's key, or say whose account it is."""

QUERY_KEYS = frozenset({b"key", b"api_key", b"api-key", b"access_token"})
"""The same in queries."""

CHAT = "chat/completions"
VERSION = b"anthropic-version"
SPOKEN = b"2023-06-01"
"""The version of Anthropic's API that is asked for where a client says none."""


@dataclass(frozen=True, slots=True, eq=False)
class Destination:
    """``models`` are globs; ``added`` are the operator's headers, names in lower case.

    ``key`` is for paths that are ``allowed``, unless a named client has its own of them.
    ``kind``: how its API has the key.  ``most``: requests of a tenant at a time, 0 is no bound.
    """

    name: str
    upstream: Upstream
    models: tuple[str, ...] = ()
    kind: Kind = "openai"
    key: str | None = field(default=None, repr=False)
    allowed: tuple[str, ...] = ()
    client_keys: bool = False
    most: int = 0
    added: tuple[tuple[bytes, bytes], ...] = field(default=(), repr=False)

    def headers(self, sent: RawHeaders, api: str) -> RawHeaders:
        """What goes there of a request's headers, and what is added.

        ``api`` is what the path is for, ``chat/completions``.
        """
        refused = {COOKIE, *(name for name, _ in self.added)}
        if not self.client_keys:
            refused |= PAYING
        kept = [each for each in sent if each[0].lower() not in refused]
        if self.kind == "anthropic" and api != CHAT and get(kept, VERSION) is None:
            kept.append((VERSION, SPOKEN))
        return [*kept, *self._credential(api), *self.added]

    def query(self, sent: bytes) -> bytes:
        """What goes there of a request's query."""
        if self.client_keys or not sent:
            return sent
        return b"&".join(part for part in sent.split(b"&") if not _holds_key(part))

    @property
    def whole_list(self) -> bytes:
        """The query that asks for all models at once: Anthropic gives twenty by itself."""
        return b"limit=1000" if self.kind == "anthropic" else b""

    def _credential(self, api: str) -> RawHeaders:
        """Anthropic takes its key as OpenAI does where it speaks as OpenAI does."""
        if self.key is None or self.kind == "openai" or (self.kind == "anthropic" and api == CHAT):
            return bearer(self.key)
        return [(b"x-api-key" if self.kind == "anthropic" else b"api-key", self.key.encode())]


def _holds_key(part: bytes) -> bool:
    return unquote_to_bytes(part.partition(b"=")[0]).lower() in QUERY_KEYS
