"""The caller, and the list of tenants."""

from __future__ import annotations

from proxy import __version__
from proxy.memory_api.api import Api
from proxy.memory_api.call import CallingClient, IsAdmin, Tenant
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import After, Limit
from proxy.memory_api.shapes.overview import Tenant as Known
from proxy.memory_api.shapes.overview import TenantList, WhoAmI

TAG = "Overview"
ALL_PROFILES = "*"


@operation("GET", "/memory/v1/whoami", TAG, tenant_optional=True)
async def who_am_i(api: Api, tenant: Tenant, admin: IsAdmin, client: CallingClient) -> WhoAmI:
    """See who you are.

    The tenant of the key, and the profiles that it may name.
    """
    allowed = client.profiles if client else (ALL_PROFILES,)
    names = api.settings.profiles
    return WhoAmI(
        tenant=tenant or None,
        admin=admin,
        client=client.name if client else None,
        profiles=[name for name in names if name in allowed or ALL_PROFILES in allowed],
        version=__version__,
    )


@operation("GET", "/memory/v1/tenants", TAG, admin=True)
async def list_tenants(api: Api, limit: Limit, after: After) -> TenantList:
    """List tenants.

    For the administrator alone.
    """
    # All that have sessions: this goes through the whole store.
    named = [client.name for client in api.settings.clients]
    known = {*await api.store.tenants(), *named}
    following = sorted(tenant for tenant in known if tenant > (after or ""))
    part = [Known(id=tenant) for tenant in following[:limit]]
    return TenantList.part(part, part[-1].id if len(following) > limit else None)
