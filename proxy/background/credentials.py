"""The headers that tenants' requests are made with.

Keys are never stored: in tenancy modes ``key`` and ``single`` a tenant's own is known from its
latest request, in this process only.
"""

from __future__ import annotations

from cachetools import LRUCache

from proxy.errors import RawHeaders
from proxy.wire.api import bearer

MOST = 10_000
"""Tenants whose keys a process remembers; of more, those not heard of for longest go."""

KEPT = frozenset(
    {b"authorization", b"api-key", b"x-api-key", b"openai-organization", b"openai-project"}
)
"""Headers that say who pays; names are lower case, as ASGI has them."""


class Credentials:
    """The headers that the upstream knows a tenant by.

    The tenant ``anonymous`` is the one whose requests carry no key.  ``upstream_key`` is sent for
    everybody where there is one (mode ``clients``); then no tenant's own is kept.
    """

    def __init__(self, anonymous: str, upstream_key: str | None = None) -> None:
        self._anonymous = anonymous
        self._for_all = bearer(upstream_key) or None
        self._latest: LRUCache[str, RawHeaders] = LRUCache(MOST)

    def __repr__(self) -> str:
        return f"<Credentials of {len(self._latest)} tenants>"

    def note(self, tenant: str, headers: RawHeaders) -> None:
        """Remember what this request of the tenant was made with; no key at all counts too."""
        if self._for_all is not None or tenant == self._anonymous:
            return
        self._latest[tenant] = [field for field in headers if field[0] in KEPT]

    def of(self, tenant: str) -> RawHeaders | None:
        """What to send for a tenant; None where that is not known."""
        if self._for_all is not None:
            return self._for_all
        return [] if tenant == self._anonymous else self._latest.get(tenant)
