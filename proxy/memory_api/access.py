"""Authorization: which tenant's memory a request may access; and the caller's fields in logs.

A caller sees the tenant of its credential.  The tenants ``anonymous`` and ``single`` have no key,
so they need the administrator's, or a caller on the same machine: the peer and the ``Host`` are
loopback, no reverse proxy has forwarded the request, and it does not come from another site's page
(browsers send Origin and Sec-Fetch-Site; checking the Host prevents DNS rebinding).

The administrator's key sees every tenant, one at a time, named by ``?tenant=``, which is optional
with ``tenancy.mode = "single"``.  Other callers that name another tenant than their own are
refused: an answer about their own would look like one about a tenant without memory.
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from proxy.errors import RawHeaders, admin_key_required, invalid_api_key, tenant_not_found
from proxy.logs import hashed
from proxy.memory_api.api import Api
from proxy.memory_api.fields import invalid
from proxy.memory_api.overview.tenants import KnownTenants
from proxy.tenancy import OPEN_TENANTS, SINGLE, Client
from proxy.wire.hosts import is_loopback, is_same_site

CALLER = "memory.caller"
"""The key of a request's ``MemoryAccess`` in its scope, once access is granted."""


class MemoryAccess(NamedTuple):
    """The tenant whose memory was accessed; ``by`` is "admin" if by the administrator."""

    tenant: str
    by: str | None = None


def log_fields(request: Request) -> dict[str, str]:
    """The fields of log lines about the caller and the tenant; empty before access is granted."""
    access: MemoryAccess | None = request.scope.get(CALLER)
    if access is None:
        return {}
    fields = {"tenant": hashed(access.tenant)}
    return {"by": access.by, **fields} if access.by else fields


_FORWARDING_HEADERS = frozenset(
    b"""
    cdn-loop cf-connecting-ip cf-connecting-ipv6 cf-ray client-ip cloudfront-viewer-address
    do-connecting-ip fastly-client-ip fly-client-ip forwarded proxy-client-ip
    tailscale-user-login true-client-ip via wl-proxy-client-ip x-amz-cf-id x-amzn-trace-id
    x-appengine-user-ip x-azure-clientip x-azure-ref x-azure-socketip x-client-ip
    x-cluster-client-ip x-envoy-external-address x-forwarded x-nf-client-connection-ip
    x-original-forwarded-for x-original-host x-proxyuser-ip x-real-ip x-sucuri-clientip
    x-vercel-forwarded-for
    """.split()
)
"""Headers that reverse proxies, load balancers and tunnels add to the requests that they forward;
those that begin with ``x-forwarded-`` count too."""


class Access:
    """Determines the tenant of a request, or raises ProxyError."""

    def __init__(self, api: Api) -> None:
        self._tenancy = api.tenancy
        self._single = api.settings.tenancy.mode == "single"
        self._known = KnownTenants(api.settings, api.store, api.spool)

    def tenant(self, request: Request) -> str:
        """The tenant whose memory this request may see.

        Raises ProxyError 401 where it may see none, 403 where it names another's, 400 where the
        administrator names none and where the request carries two different keys.
        """
        headers = request.headers.raw
        if self._tenancy.is_admin(headers):
            named = self.named_tenant(request)
            if named is None:
                raise invalid("Say whose memory you mean: ?tenant=.", "tenant")
            request.scope[CALLER] = MemoryAccess(named, "admin")
            return named
        tenant = self._tenancy.caller(headers).tenant
        if tenant in OPEN_TENANTS and not is_local(request):
            raise invalid_api_key()
        if not {tenant, ""}.issuperset(request.query_params.getlist("tenant")):
            raise admin_key_required()
        request.scope[CALLER] = MemoryAccess(tenant)
        return tenant

    async def check_tenant_exists(self, request: Request) -> None:
        """Raise ProxyError 404 where the administrator names a tenant that does not exist."""
        named = self.named_tenant(request) if self.is_admin(request) else None
        if named is not None and not await self._known.exists(named):
            request.scope[CALLER] = MemoryAccess(named, "admin")
            raise tenant_not_found(named)

    def client(self, request: Request) -> Client | None:
        """The configured client with the request's key, None for other callers."""
        headers = request.headers.raw
        return None if self._tenancy.is_admin(headers) else self._tenancy.caller(headers).client

    def is_admin(self, request: Request) -> bool:
        """Whether the administrator asks.  Raises ProxyError 400 for two different keys."""
        return self._tenancy.is_admin(request.headers.raw)

    def check_admin(self, request: Request) -> None:
        """Raise ProxyError 401 unless the caller is the administrator."""
        if not self.is_admin(request):
            raise invalid_api_key()

    def named_tenant(self, request: Request) -> str | None:
        """The tenant of ``?tenant=``, else the only one.  Raises ProxyError 400 for several."""
        names = set(request.query_params.getlist("tenant")) - {""}
        if len(names) > 1:
            raise invalid("Name one tenant: ?tenant= came twice.", "tenant")
        return next(iter(names), SINGLE if self._single else None)


def is_local(request: Request) -> bool:
    """Whether the request comes directly from a program or one of our pages on this machine."""
    headers = request.headers.raw
    peer = request.client.host if request.client else ""
    return is_loopback(peer) and not _is_forwarded(headers) and is_same_site(headers)


def _is_forwarded(headers: RawHeaders) -> bool:
    names = [name.lower() for name, _ in headers]
    return any(name in _FORWARDING_HEADERS or name.startswith(b"x-forwarded-") for name in names)
