"""One request of the memory API, and where the arguments of a handler come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
from starlette.requests import Request

from proxy.memory_api.access import Access
from proxy.memory_api.api import Api
from proxy.memory_api.body import body_of
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.idempotency import IdempotentRequest
from proxy.tenancy import Client
from proxy.wire.limits import Reservation


class Call:
    """A request with what arguments are read from.  ``tenant``: whose memory it may see, "" where
    that does not matter.  ``held``: the room taken for its body and its answer."""

    def __init__(
        self, api: Api, access: Access, request: Request, tenant: str, held: Reservation
    ) -> None:
        self.api, self.access, self.tenant, self.held = api, access, tenant, held
        self.request: Request = request
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """As it came.  Raises ProxyError 400, 408, 413 and 503, and ClientDisconnect."""
        if self._body is None:
            self._body = await body_of(self.request, self.api.settings.server, self.held)
        return self._body


Reader = Callable[[Call], object]
"""Gives an argument, or an awaitable of it.  Raises ProxyError."""


class From(msgspec.Struct, frozen=True):
    """Says of an argument where it comes from, where the document has nothing to say of it."""

    read: Reader


async def _once(call: Call) -> IdempotentRequest:
    return IdempotentRequest(call.api.items, call.request, call.tenant, await call.body())


Tenant = Annotated[str, From(lambda call: call.tenant)]
IsAdmin = Annotated[bool, From(lambda call: call.access.is_admin(call.request))]
CallingClient = Annotated[Client | None, From(lambda call: call.access.client(call.request))]
"""The named client that asks, None for everybody else."""

RawBody = Annotated[bytes, From(lambda call: call.body())]
RawRequest = Annotated[Request, From(lambda call: call.request)]
RequestConditions = Annotated[Conditions, From(lambda call: Conditions(call.request))]
"""The conditions of a change: whoever takes them can be bound to what was read."""

IdempotentCall = Annotated[IdempotentRequest, From(_once)]
"""The attempt that a request is: whoever takes it answers the same request twice alike."""
