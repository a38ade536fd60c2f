"""Remembers the credentials of tenants' requests.

They are never written to disk: in tenancy modes ``key`` and ``single`` they are those of the
tenant's latest request to this process.
"""

from __future__ import annotations

from cachetools import LRUCache

from proxy.errors import RawHeaders
from proxy.wire.api import bearer

MAX_TENANTS = 10_000
"""Tenants whose credentials are remembered; the least recently used are dropped."""

CREDENTIAL_HEADERS = frozenset(
    {b"authorization", b"api-key", b"x-api-key", b"openai-organization", b"openai-project"}
)
"""Headers with a key or an account; names are lower case, as ASGI has them."""


class Credentials:
    """The headers with which an upstream is called for each tenant.

    ``anonymous`` is the tenant without a key.  An ``upstream_key`` (mode ``clients``) is used for
    all tenants, and their own are not remembered.
    """

    def __init__(self, anonymous: str, upstream_key: str | None = None) -> None:
        self._anonymous = anonymous
        self._shared = bearer(upstream_key) or None
        self._latest: LRUCache[str, RawHeaders] = LRUCache(MAX_TENANTS)

    def __repr__(self) -> str:
        return f"<Credentials of {len(self._latest)} tenants>"

    def remember(self, tenant: str, headers: RawHeaders) -> None:
        """Remember the credentials of a request, also that it had none."""
        if self._shared is not None or tenant == self._anonymous:
            return
        self._latest[tenant] = [field for field in headers if field[0] in CREDENTIAL_HEADERS]

    def of(self, tenant: str) -> RawHeaders | None:
        """The headers to send for a tenant; None if they are not known."""
        if self._shared is not None:
            return self._shared
        return [] if tenant == self._anonymous else self._latest.get(tenant)
