"""Chooses one of several upstreams for a call, and the headers that are sent to it.

The choice is by the upstream's name in a header, else by the model in the path or the JSON body.
Clients never give a URL.
"""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.errors import RawHeaders, cross_site, path_not_allowed
from proxy.gateway.dispatch.catalogue import ModelCatalogue, lists_models
from proxy.gateway.offload import RequestThreads
from proxy.gateway.passthrough import Passthrough, body_to_forward, failure_of_status
from proxy.gateway.request import ProxyRequest
from proxy.gateway.routes import Route
from proxy.settings import ServerSettings
from proxy.settings.upstreams import DEFAULT
from proxy.telemetry import Telemetry
from proxy.tenancy import Tenancy
from proxy.upstreams.choice import Upstreams
from proxy.upstreams.destination import BILLING_HEADERS, COOKIE, VERSION, Destination
from proxy.upstreams.request_limits import SlotReply, UpstreamSlots
from proxy.upstreams.windows import ContextWindows
from proxy.wire.body import Body
from proxy.wire.failures import UpstreamError
from proxy.wire.headers import get
from proxy.wire.hosts import Trusted
from proxy.wire.upstream import Reply, Upstream

_IN_PATH = re.compile(rb"/deployments/([^/]+)/|/models/(.+)")
"""Azure's deployments, and ``GET /v1/models/NAME``."""


LISTING_HEADERS = BILLING_HEADERS | {
    b"accept",
    b"user-agent",
    VERSION,
    b"origin",
    b"sec-fetch-site",
    b"host",
}
"""Request headers that are sent with the requests for the upstreams' lists of models."""


DEFAULT_TYPES = (b"", b"text/plain", b"application/x-www-form-urlencoded")
"""Media types that curl and web pages send by default, also with JSON bodies."""


class _ModelField(msgspec.Struct):
    model: str | None = None


_decoder = msgspec.json.Decoder(_ModelField)


def model_in(body: bytes) -> str | None:
    """The ``model`` of a JSON body; slow for a large one."""
    try:
        return _decoder.decode(body).model
    except jsontext.UNREADABLE:
        return _model_beside_surrogates(body)


def _model_beside_surrogates(body: bytes) -> str | None:
    """The same for a body with lone surrogates, which msgspec rejects."""
    try:
        model = jsontext.decode(jsontext.fields(body).get("model", b"null"))
    except jsontext.UNREADABLE:
        return None
    return model if isinstance(model, str) else None


def model_of(route: Route) -> str | None:
    """The model in a path, decoded; its slashes may be percent-encoded or not."""
    match = _IN_PATH.match(route.target)
    return unquote((match[1] or match[2]).decode("latin-1")) if match else None


class DispatchOptions(msgspec.Struct, frozen=True):
    """What ``Dispatch`` needs to choose an upstream: the upstreams, their models' windows, threads
    and limits for reading bodies, and the web pages that may use the operator's keys."""

    upstreams: Upstreams
    windows: ContextWindows
    threads: RequestThreads
    limits: ServerSettings
    trusted: Trusted


class Dispatch(Passthrough):
    """Relays calls to one of several upstreams.

    Each has its own HTTP client, connections and limits, so that one that hangs does not delay
    calls to others.
    """

    def __init__(
        self, upstream: Upstream, tenancy: Tenancy, telemetry: Telemetry, options: DispatchOptions
    ) -> None:
        super().__init__(upstream, tenancy, telemetry)
        self._options, self._slots = options, UpstreamSlots()
        self._catalogue = ModelCatalogue(options.upstreams, options.windows, telemetry)
        telemetry.label_upstreams([DEFAULT, *(each.name for each in options.upstreams.listed)])

    def upstream_named(self, name: str) -> Destination | None:
        return self._options.upstreams.by_name(name)

    def choose(self, call: ProxyRequest, model: str | None) -> None:
        model = model_of(call.route) or model
        if model is not None and not call.identity.upstream:
            call.destination = self._options.upstreams.of_model(model)

    async def serve(self, call: ProxyRequest) -> None:
        if call.identity.upstream:
            return await super().serve(call)
        if lists_models(call):
            return await self._list(call)
        self.choose(call, None)
        if call.destination is not None or not _may_be_json(call.headers):
            return await super().serve(call)
        body = await call.body(self._options.limits)
        await self.forward(call, body_to_forward(call, body))

    async def forward(self, call: ProxyRequest, body: bytes | None) -> None:
        is_chosen = call.destination is not None or call.identity.upstream
        if body and not is_chosen and _may_be_json(call.headers):
            model = await self._options.threads.run(
                call.caller.tenant, len(body), partial(model_in, body)
            )
            self.choose(call, model)
        await super().forward(call, body)

    async def _list(self, call: ProxyRequest) -> None:
        """Answer with the models of all upstreams; relay to [upstream] if none has a list."""
        body = await call.body(self._options.limits)
        with call.guard():
            models = await self._catalogue.models(partial(self._request_list, call))
            if models is not None:
                return await call.answer(models)
        await super().forward(call, body_to_forward(call, body))

    async def _request_list(self, call: ProxyRequest, destination: Destination | None) -> Reply:
        listing_headers = [each for each in call.headers if each[0] in LISTING_HEADERS]
        query = call.query if destination is None else destination.query_for_models
        headers = [*listing_headers, (b"accept-encoding", b"identity")]
        list_request = replace(call, destination=destination, query=query, headers=headers)
        return await self.send_upstream(list_request, None)

    async def _send(
        self, call: ProxyRequest, headers: RawHeaders, body: Body, length: int | None
    ) -> Reply:
        name = call.upstream or DEFAULT
        try:
            reply = await self._send_to_destination(call, headers, body, length)
        except UpstreamError as error:
            self._telemetry.count_upstream_request(name, error.kind)
            raise
        self._telemetry.count_upstream_request(name, failure_of_status(reply.status) or "answered")
        return reply

    async def _send_to_destination(
        self, call: ProxyRequest, headers: RawHeaders, body: Body, length: int | None
    ) -> Reply:
        destination = call.destination
        if destination is None:
            without_cookies = [each for each in headers if each[0] != COOKIE]
            return await super()._send(call, without_cookies, body, length)
        if destination.key is not None:
            self._check(call, destination)
        headers = destination.headers(headers, call.route.name)
        query = destination.query(call.query)
        target = call.route.target + (b"?" + query if query else b"")
        release = self._slots.take(destination, call.caller.tenant)
        try:
            reply = await destination.upstream.send(call.method, target, headers, body, length)
        except BaseException:
            release()
            raise
        return SlotReply(reply, release)

    def _check(self, call: ProxyRequest, destination: Destination) -> None:
        """Raise ProxyError 403 for a call that must not use the operator's key."""
        if call.caller.is_anonymous and not self._options.trusted.admits(call.headers):
            raise cross_site()
        if call.caller.client is not None:
            return
        if not call.route.allowed_by(call.method, destination.allowed):
            raise path_not_allowed()


def _may_be_json(headers: RawHeaders) -> bool:
    """Whether to read a body for its model; forms and files, which may be huge, are not read."""
    kind = (get(headers, b"content-type") or b"").partition(b";")[0].strip().lower()
    return b"json" in kind or kind in DEFAULT_TYPES
