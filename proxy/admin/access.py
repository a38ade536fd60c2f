"""Who may see whose memory.

A caller sees the tenant of its credential.  The tenants ``anonymous`` and ``single`` belong to
nobody's key, so they need the administrator's, or a caller on this very machine: the peer and the
Host are loopback, no reverse proxy has passed the request on, and no other site's page has made it
(a browser sends Sec-Fetch-Site; the Host stops DNS rebinding).

The administrator's key sees every tenant, one at a time: ``?tenant=`` says which.  It may be left
out with ``tenancy.mode = "single"``, where there is only one.  Whoever else names another tenant
than its own is refused: an answer about the wrong one would look like one about nobody.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin.asking import invalid, session_id
from proxy.admin.audit import CALLER, Seen
from proxy.admin.endpoint import Handler
from proxy.admin.parts import AdminParts, Client
from proxy.admin.tenants import Known
from proxy.errors import RawHeaders, admin_key_required, invalid_api_key, tenant_not_found
from proxy.memory.model import SessionKey

SINGLE = "single"
OPEN_TENANTS = frozenset({"anonymous", SINGLE})
"""Tenants that callers without a key of their own are of."""

_PASSED_ON = frozenset(
    {
        b"forwarded",
        b"via",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-proto",
        b"x-real-ip",
    }
)
_OWN_SITE = (b"same-origin", b"none")
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::[0-9]*)?", re.IGNORECASE)


class Access:
    """Tells a request's tenant, or raises ProxyError."""

    def __init__(self, parts: AdminParts) -> None:
        self._tenants = parts.tenants
        self._single = parts.settings.tenancy.mode == "single"
        self._known = Known(parts.settings, parts.store, parts.meter, parts.spool)

    def tenant(self, request: Request) -> str:
        """The tenant whose memory this request may see.

        Raises ProxyError 401 where it may see none, 403 where it names another's, 400 where the
        administrator names none and where the request carries two different keys.
        """
        headers = request.headers.raw
        if self._tenants.is_admin(headers):
            chosen = self.chosen(request)
            if chosen is None:
                raise invalid("Say whose memory you mean: ?tenant=.", "tenant")
            request.scope[CALLER] = Seen(chosen, "admin")
            return chosen
        tenant = self._tenants.caller(headers).tenant
        if tenant in OPEN_TENANTS and not is_local(request):
            raise invalid_api_key()
        if not {tenant, ""}.issuperset(request.query_params.getlist("tenant")):
            raise admin_key_required()
        request.scope[CALLER] = Seen(tenant)
        return tenant

    def bound(self, handler: Handler) -> Handler:
        """The handler, but for requests of the administrator that name nobody: ProxyError 404."""

        async def handle(request: Request) -> Response:
            chosen = self.chosen(request) if self.is_admin(request) else None
            if chosen is not None and not await self._known.knows(chosen):
                raise tenant_not_found(chosen)
            return await handler(request)

        return handle

    def key(self, request: Request) -> SessionKey:
        """The session in the path, of the request's tenant.  Raises ProxyError 400 as well."""
        return SessionKey(self.tenant(request), session_id(request))

    def client(self, request: Request) -> Client | None:
        """The named client that asks, None for everybody else."""
        headers = request.headers.raw
        return None if self._tenants.is_admin(headers) else self._tenants.caller(headers).client

    def is_admin(self, request: Request) -> bool:
        """Does the administrator ask?  Raises ProxyError 400 for two different keys."""
        return self._tenants.is_admin(request.headers.raw)

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
    return (
        _is_loopback(peer)
        and not any(name.lower() in _PASSED_ON for name, _ in headers)
        and all(site in _OWN_SITE for site in _values(headers, b"sec-fetch-site"))
        and _names_loopback(_values(headers, b"host"))
    )


def _values(headers: RawHeaders, wanted: bytes) -> list[bytes]:
    return [value.strip().lower() for name, value in headers if name.lower() == wanted]


def _names_loopback(hosts: list[bytes]) -> bool:
    found = _HOST.fullmatch(hosts[0].decode("latin-1")) if len(hosts) == 1 else None
    if found is None:
        return False
    return found["name"] == "localhost" or _is_loopback(found["six"] or found["name"])


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped.is_loopback
    return found.is_loopback
