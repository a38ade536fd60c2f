"""Who asks, and whose memory there is: for pages and programs that have to offer a choice."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy import __version__
from proxy.admin.access import Access
from proxy.admin.objects import listed, reply
from proxy.admin.parts import AdminParts, Client

ALL_PROFILES = "*"


class Callers:
    """``/whoami`` and ``/tenants``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._settings, self._store, self._access = parts.settings, parts.store, access

    async def whoami(self, request: Request) -> Response:
        """Whose memory the caller sees, and which profiles it may name.

        ``tenant`` is null for the administrator who has not chosen one.
        """
        admin = self._access.is_admin(request)
        chosen = not admin or self._access.chosen(request) is not None
        tenant = self._access.tenant(request) if chosen else None
        client = self._access.client(request)
        caller = {
            "object": "caller",
            "tenant": tenant,
            "admin": admin,
            "client": client.name if client else None,
            "profiles": self._profiles(client),
            "version": __version__,
        }
        return reply(caller)

    async def tenants(self, request: Request) -> Response:
        """All that have sessions, and the clients that the configuration names, sorted.

        For the administrator alone; goes through the whole store.
        """
        self._access.must_be_admin(request)
        named = [client.name for client in self._settings.clients]
        known = sorted({*await self._store.tenants(), *named})
        return reply(listed([{"object": "tenant", "id": tenant} for tenant in known]))

    def _profiles(self, client: Client | None) -> list[str]:
        allowed = client.profiles if client else (ALL_PROFILES,)
        names = self._settings.profiles
        return [name for name in names if name in allowed or ALL_PROFILES in allowed]
