"""The entry point of the relay: identifies the caller, dispatches the request, answers errors.

Design: read -> identify -> parse -> load -> compose -> open the upstream and relay -> observe ->
commit.  A chat completion with a session goes through ``Conversations``; other requests are relayed
unchanged or answered from kept state.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from proxy.errors import (
    ProxyError,
    RawHeaders,
    path_not_allowed,
    server_error,
    upgrade_refused,
    user_required,
)
from proxy.gateway.conversation import Conversations
from proxy.gateway.fetches import Fetches
from proxy.gateway.identity import SIGNATURE, Aliases, Identity, IdentityReader, check_signature
from proxy.gateway.passthrough import Passthrough
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.request import ProxyRequest, Scope
from proxy.gateway.routes import Route
from proxy.gateway.state.endpoints import StateEndpoints
from proxy.logs import ACCESS, CLIENT_GONE, Access, access, hashed
from proxy.reasons import explain_failure
from proxy.settings import Settings
from proxy.telemetry import Route as Kind
from proxy.telemetry import Telemetry
from proxy.tenancy import Caller, Client, Tenancy
from proxy.wire.body import ClientGone, Receive
from proxy.wire.failures import UpstreamError, UpstreamUnreachable, error_for
from proxy.wire.headers import get
from proxy.wire.hosts import Trusted
from proxy.wire.limits import ByteBudgets, RequestLimit
from proxy.wire.relay import Delivery, Send

logger = logging.getLogger(__name__)

_MODEL = re.compile(r"[\w.:/@+-]{1,100}", re.ASCII)
"""Model names that may be logged: a client may send any text there."""


class Gateway:
    """Serves the relay's routes: an ASGI application that also takes the route."""

    def __init__(
        self,
        settings: Settings,
        tenancy: Tenancy,
        passthrough: Passthrough,
        conversations: Conversations,
        fetches: Fetches,
        state: StateEndpoints,
        telemetry: Telemetry,
        budgets: ByteBudgets,
    ) -> None:
        self._fetches, self._state, self._budgets = fetches, state, budgets
        self._tenancy, self._passthrough, self._conversations = tenancy, passthrough, conversations
        self._telemetry = telemetry
        self._require_user = settings.tenancy.require_user
        self._request_limit = RequestLimit(settings.server.max_concurrent_requests)
        self._open_requests = 0
        self._idle = asyncio.Event()
        server = settings.server
        self._trusted = Trusted.of(server.cors_origins, settings.tenancy.trusted_hosts)
        self._reader = IdentityReader(Aliases.of(server.session_aliases, server.user_aliases))

    async def serve(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()
        delivery = Delivery(send)
        call: ProxyRequest | None = None
        status, code = CLIENT_GONE, ""
        cause: str | None = None
        self._telemetry.stream_opened()
        self._open_requests += 1
        try:
            call = self._call(route, scope, receive, delivery)
            await self._serve(call)
            status = delivery.status
        except ClientGone:
            pass
        except ProxyError as error:
            code = error.code
            status = await _refuse(delivery, error, call, route)
        except UpstreamError as error:
            code, cause = error.kind, _cause(error)
            self._telemetry.count_upstream_failure(error.kind)
            status = await _refuse(delivery, error_for(error), call, route)
        except Exception:  # the boundary to the server: a bug is logged here, once, and answered
            logger.exception("a request failed")
            status = await _refuse(delivery, server_error(), call, route)
        finally:
            self._open_requests -= 1
            if not self._open_requests:
                self._idle.set()
            self._telemetry.stream_closed()
            if call is not None:
                call.reservation.release()
            self._count(call, route, status)
            if cause or ACCESS.isEnabledFor(logging.INFO):
                ms = (time.perf_counter() - start) * 1000
                outcome = RequestOutcome(status, code, ms, delivery.bytes, cause)
                access(_access_entry(call, route, scope, outcome))

    async def drain(self, seconds: float) -> None:
        """Wait for requests in flight, at most ``seconds``: uvicorn cancels without waiting."""
        self._idle.clear()
        if self._open_requests:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), seconds)

    def _call(
        self, route: Route, scope: Scope, receive: Receive, delivery: Delivery
    ) -> ProxyRequest:
        method: str = scope["method"]
        headers: RawHeaders = scope["headers"]
        caller = self._caller(route, scope)
        cross_site = caller.is_anonymous and not self._trusted.admits(headers)
        reason = _without_memory(route, method, cross_site)
        try:
            identity = self._identity(route, method, caller, headers)
            name = identity.upstream
            destination = self._passthrough.upstream_named(name) if name else None
        except ProxyError as error:
            raise self._with_session(error, route, headers, reason) from None
        why = reason or identity.reason
        report = MemoryReport(identity.session, reason=why) if identity.session else None
        may_use_state = identity.mode != "off" and not cross_site
        recorded = may_use_state and identity.uses_memory and identity.records
        if reason is not None and identity.uses_memory:
            identity = replace(identity, mode="off")
        return ProxyRequest(
            method=method,
            route=route,
            query=scope["query_string"],
            headers=headers,
            receive=receive,
            delivery=delivery,
            caller=caller,
            identity=identity,
            reservation=self._budgets.reservation(caller.tenant),
            report=report,
            destination=destination,
            may_fetch_response=recorded and method == "GET" and route.is_stored_response,
            may_use_state=may_use_state,
        )

    def _caller(self, route: Route, scope: Scope) -> Caller:
        """The caller.  Raises ProxyError; the error for an unknown key has no session in it."""
        headers: RawHeaders = scope["headers"]
        try:
            return self._tenancy.caller(headers, scope["raw_path"] + b"?" + scope["query_string"])
        except ProxyError as error:
            if error.status == 401:
                raise
            reason = _without_memory(route, scope["method"], cross_site=False)
            raise self._with_session(error, route, headers, reason) from None

    def _with_session(
        self, error: ProxyError, route: Route, headers: RawHeaders, reason: Reason | None
    ) -> ProxyError:
        """The error with the report's headers, if the request names a session."""
        session = self._reader.session(headers, route.session)
        return error.with_headers(MemoryReport(session, reason=reason).headers() if session else [])

    def _identity(self, route: Route, method: str, caller: Caller, headers: RawHeaders) -> Identity:
        """The request's identity, checked against what the caller may use.  Raises ProxyError."""
        if _wants_socket(method, headers):
            raise upgrade_refused()
        identity = self._reader.identify(headers, route.session)
        if caller.client is not None:
            _check_client(caller.client, method, route, identity, headers)
        if self._require_user and identity.user is None:
            raise user_required()
        return identity

    async def _serve(self, call: ProxyRequest) -> None:
        with self._request_limit.slot(call.caller.tenant):
            if self._conversations.serves(call):
                await self._conversations.serve(call)
            elif self._state.serves(call):
                await self._state.serve(call)
            elif call.may_fetch_response:
                await self._fetches.serve(call)
            else:
                await self._passthrough.serve(call)

    def _count(self, call: ProxyRequest | None, route: Route, status: int) -> None:
        memory = call.report.status if call and call.report else "none"
        self._telemetry.count_request(_kind(route), status, memory)


class RequestOutcome(NamedTuple):
    """How a request ended.  ``error`` is an error code, "" if nothing failed, ``cause`` why the
    upstream did."""

    status: int
    error: str
    ms: float
    bytes: int
    cause: str | None


def _access_entry(
    call: ProxyRequest | None, route: Route, scope: Scope, outcome: RequestOutcome
) -> Access:
    report = call.report if call else None
    return Access(
        request=(report and report.exchange) or f"{random.getrandbits(64):016x}",
        method=scope["method"],
        route=_kind(route),
        path=f"/v1/{route.api}",
        status=outcome.status,
        ms=outcome.ms,
        memory=report.status if report else "none",
        bytes=outcome.bytes,
        error=outcome.error or None,
        upstream_ms=call.upstream_seconds * 1000 if call and call.upstream_seconds else None,
        model=call.model if call and call.model and _MODEL.fullmatch(call.model) else None,
        upstream=call.destination.name if call and call.destination else None,
        tenant=_hashed_tenant(call.caller.tenant) if call else None,
        session=hashed(report.session) if report else None,
        cause=outcome.cause,
    )


_hashed_tenant = lru_cache(maxsize=256)(hashed)
"""Cached: there are few tenants, and many lines of each."""


def _kind(route: Route) -> Kind:
    return "chat" if route.is_chat else "relay"


def _without_memory(route: Route, method: str, cross_site: bool) -> Reason | None:
    """Why a request is relayed without memory, whatever its headers ask for; None if it is not."""
    if not route.is_chat or method != "POST":
        return "not_chat"
    return "cross_site" if cross_site else None


def _check_client(
    client: Client, method: str, route: Route, identity: Identity, headers: RawHeaders
) -> None:
    """Raise ProxyError 403 for a path or profile that this client may not use, and for ids without
    a valid signature if it must sign them."""
    if not route.allowed_by(method, client.allowed_paths):
        raise path_not_allowed()
    client.may_use(identity.profile)
    session, user = identity.session or "", identity.user or ""
    if client.signing_secret is not None and (session or user):
        header = get(headers, SIGNATURE)
        check_signature(header, client.signing_secret, session, user, time.time())


def _wants_socket(method: str, headers: RawHeaders) -> bool:
    """Whether a request is a WebSocket handshake.  With a method other than GET ``Upgrade`` is only
    an offer, which is ignored."""
    if method != "GET":
        return False
    protocols = (get(headers, b"upgrade") or b"").split(b",")
    return b"websocket" in (protocol.strip().lower() for protocol in protocols)


def _cause(error: UpstreamError) -> str:
    """The reason of a failure; for a failed connection, with the operating system's error."""
    if isinstance(error, UpstreamUnreachable) and error.__cause__ is not None:
        return f"{error}: {explain_failure(error.__cause__)}"
    return str(error)


async def _refuse(
    delivery: Delivery, error: ProxyError, call: ProxyRequest | None, route: Route
) -> int:
    if delivery.status:  # the answer has started: it is left incomplete
        return delivery.status
    extra = call.report.headers() if call and call.report else []
    body = route.error(error)
    await delivery.start(error.status, [*error.headers_of(body), *extra])
    await delivery.end(body)
    return error.status
