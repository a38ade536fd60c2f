"""A request to the memory API, and the readers of a handler's arguments."""

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
    """A request with what arguments are read from.  ``tenant``: whose memory it may see, "" if the
    operation needs none.  ``reservation``: the memory reserved for its body and its answer."""

    def __init__(
        self, api: Api, access: Access, request: Request, tenant: str, reservation: Reservation
    ) -> None:
        self.api, self.access, self.tenant, self.reservation = api, access, tenant, reservation
        self.request: Request = request
        self._body: bytes | None = None

    async def body(self) -> bytes:
        """The raw body.  Raises ProxyError 400, 408, 413 and 503, and ClientDisconnect."""
        if self._body is None:
            self._body = await body_of(self.request, self.api.settings.server, self.reservation)
        return self._body


Reader = Callable[[Call], object]
"""Returns an argument, or an awaitable of it.  Raises ProxyError."""


class FromRequest(msgspec.Struct, frozen=True):
    """Annotates an argument that is no parameter in the document with its reader."""

    read: Reader


async def _idempotent_request(call: Call) -> IdempotentRequest:
    return IdempotentRequest(call.api.store, call.request, call.tenant, await call.body())


Tenant = Annotated[str, FromRequest(lambda call: call.tenant)]
IsAdmin = Annotated[bool, FromRequest(lambda call: call.access.is_admin(call.request))]
CallingClient = Annotated[Client | None, FromRequest(lambda call: call.access.client(call.request))]
"""The configured client with the request's key, None for other callers."""

RawBody = Annotated[bytes, FromRequest(lambda call: call.body())]
RawRequest = Annotated[Request, FromRequest(lambda call: call.request)]
RequestConditions = Annotated[Conditions, FromRequest(lambda call: Conditions(call.request))]
"""The conditions of a change; an operation with this argument supports If-Match."""

IdempotentCall = Annotated[IdempotentRequest, FromRequest(_idempotent_request)]
"""An operation with this argument supports Idempotency-Key."""
