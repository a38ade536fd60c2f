"""Who may see whose memory, and the log lines that say by hashes who did.

A caller sees the tenant of its credential.  The tenants ``anonymous`` and ``single`` belong to
nobody's key, so they need the administrator's, or a caller on this very machine: the peer and the
Host are loopback, no reverse proxy has passed the request on, and no other site's page has made it
(a browser sends Origin and Sec-Fetch-Site; the Host stops DNS rebinding).

The administrator's key sees every tenant, one at a time: ``?tenant=`` says which.  It may be left
out with ``tenancy.mode = "single"``, where there is only one.  Whoever else names another tenant
than its own is refused: an answer about the wrong one would look like one about nobody.
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
"""Where a request's scope has a ``MemoryAccess``, once somebody was let in."""


class MemoryAccess(NamedTuple):
    """The tenant whose memory was accessed; ``by`` is "admin" if by the administrator."""

    tenant: str
    by: str | None = None


def log_fields(request: Request) -> dict[str, str]:
    """Who asks, and whose memory it is, as log lines say it."""
    seen: MemoryAccess | None = request.scope.get(CALLER)
    if seen is None:
        return {}
    told = {"tenant": hashed(seen.tenant)}
    return {"by": seen.by, **told} if seen.by else told


_PASSED_ON = frozenset(
    {
        b"cdn-loop",
        b"cf-connecting-ip",
        b"cf-connecting-ipv6",
        b"cf-ray",
        b"client-ip",
        b"cloudfront-viewer-address",
        b"do-connecting-ip",
        b"fastly-client-ip",
        b"fly-client-ip",
        b"forwarded",
        b"proxy-client-ip",
        b"tailscale-user-login",
        b"true-client-ip",
        b"via",
        b"wl-proxy-client-ip",
        b"x-amz-cf-id",
        b"x-amzn-trace-id",
        b"x-appengine-user-ip",
        b"x-azure-clientip",
        b"x-azure-ref",
        b"x-azure-socketip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"x-forwarded",
        b"x-nf-client-connection-ip",
        b"x-original-forwarded-for",
        b"x-original-host",
        b"x-proxyuser-ip",
        b"x-real-ip",
        b"x-sucuri-clientip",
        b"x-vercel-forwarded-for",
    }
)
"""Fields by which reverse proxies, balancers and tunnels tell that they passed a request on; so
does all that begins with ``x-forwarded-``."""


class Access:
    """Tells a request's tenant, or raises ProxyError."""

    def __init__(self, api: Api) -> None:
        self._tenancy = api.tenancy
        self._single = api.settings.tenancy.mode == "single"
        self._known = KnownTenants(api.settings, api.store, api.meter, api.spool)

    def tenant(self, request: Request) -> str:
        """The tenant whose memory this request may see.

        Raises ProxyError 401 where it may see none, 403 where it names another's, 400 where the
        administrator names none and where the request carries two different keys.
        """
        headers = request.headers.raw
        if self._tenancy.is_admin(headers):
            chosen = self.chosen(request)
            if chosen is None:
                raise invalid("Say whose memory you mean: ?tenant=.", "tenant")
            request.scope[CALLER] = MemoryAccess(chosen, "admin")
            return chosen
        tenant = self._tenancy.caller(headers).tenant
        if tenant in OPEN_TENANTS and not is_local(request):
            raise invalid_api_key()
        if not {tenant, ""}.issuperset(request.query_params.getlist("tenant")):
            raise admin_key_required()
        request.scope[CALLER] = MemoryAccess(tenant)
        return tenant

    async def must_be_known(self, request: Request) -> None:
        """Raise ProxyError 404 where the administrator names a tenant that does not exist."""
        chosen = self.chosen(request) if self.is_admin(request) else None
        if chosen is not None and not await self._known.knows(chosen):
            request.scope[CALLER] = MemoryAccess(chosen, "admin")
            raise tenant_not_found(chosen)

    def client(self, request: Request) -> Client | None:
        """The named client that asks, None for everybody else."""
        headers = request.headers.raw
        return None if self._tenancy.is_admin(headers) else self._tenancy.caller(headers).client

    def is_admin(self, request: Request) -> bool:
        """Does the administrator ask?  Raises ProxyError 400 for two different keys."""
        return self._tenancy.is_admin(request.headers.raw)

    def must_be_admin(self, request: Request) -> None:
        """Raise ProxyError 401 for everybody else."""
        if not self.is_admin(request):
            raise invalid_api_key()

    def chosen(self, request: Request) -> str | None:
        """The tenant that the administrator means.  Raises ProxyError 400 for two of them."""
        names = set(request.query_params.getlist("tenant")) - {""}
        if len(names) > 1:
            raise invalid("Name one tenant: ?tenant= came twice.", "tenant")
        return next(iter(names), SINGLE if self._single else None)


def is_local(request: Request) -> bool:
    """Does this come straight from a program or a page of our own on this machine?"""
    headers = request.headers.raw
    peer = request.client.host if request.client else ""
    return is_loopback(peer) and not _is_passed_on(headers) and is_same_site(headers)


def _is_passed_on(headers: RawHeaders) -> bool:
    names = [name.lower() for name, _ in headers]
    return any(name in _PASSED_ON or name.startswith(b"x-forwarded-") for name in names)
