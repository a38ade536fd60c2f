"""Chat completions with memory: prepare, ask the upstream, relay and record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from proxy.chat.request import ChatRequest
from proxy.errors import RawHeaders, unknown_profile
from proxy.formats.format import Format
from proxy.gateway.asking.asker import Recording, UpstreamCaller
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import ChatExchange, Services
from proxy.gateway.outgoing import OutgoingRequest, prepare
from proxy.gateway.passthrough import Passthrough, answer_headers
from proxy.gateway.recording.exchange_recorder import ExchangeRecorder
from proxy.gateway.recording.first_attempts import FirstAttempts, PendingAttempt
from proxy.gateway.recording.open_turns import OpenTurns
from proxy.gateway.recording.tap import MAX_PLAIN, TOO_LARGE, tap_of
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.request import ProxyRequest
from proxy.gateway.state.naming import SessionResolver
from proxy.gateway.state.renaming import RenamedReply
from proxy.settings import Settings
from proxy.wire.coding.decoding import IDENTITY, coding_of
from proxy.wire.headers import content_length
from proxy.wire.relay import DisconnectGuard, relay
from proxy.wire.replies import PeekedReply
from proxy.wire.upstream import Reply


class UnreadBody(NamedTuple):
    """A body that is relayed without memory, and the reason.  ``session``: None if it has none."""

    session: str | None
    body: bytes
    reason: Reason


class Conversations:
    """Serves calls with a session: each becomes an exchange under its profile.

    ``on_answered`` is called with the tenant, the request's headers and the upstream's name ("" for
    [upstream]) for each answer with a status below 400.
    """

    def __init__(
        self,
        settings: Settings,
        passthrough: Passthrough,
        services: Services,
        upstream_caller: UpstreamCaller,
        on_answered: Callable[[str, RawHeaders, str], None] | None,
    ) -> None:
        self._settings, self._passthrough, self._services = settings, passthrough, services
        self._upstream_caller, self._on_answered = upstream_caller, on_answered
        self._session_resolver = SessionResolver(settings, services)
        self._turns, self._attempts = OpenTurns(), FirstAttempts()
        self._profiles = {
            name: ProfileRules.of(profile)
            for name, profile in [("", settings.memory), *settings.profiles.items()]
        }

    def serves(self, call: ProxyRequest) -> bool:
        """Whether a call has a session, or its body may name one."""
        return call.uses_memory or self._session_resolver.applies(call)

    async def serve(self, call: ProxyRequest) -> None:
        """Answer a call.  Raises ProxyError, UpstreamError and ClientGone before the answer."""
        exchange = await self._read(call)
        if isinstance(exchange, UnreadBody):
            if exchange.session is not None:
                call.report = MemoryReport(exchange.session, reason=exchange.reason)
            return await self._passthrough.forward(call, exchange.body)
        call.model = exchange.request.model
        if call.report is not None:  # a session that we named is reported with the answer only
            call.report = exchange.report
        self._passthrough.choose(call, call.model)
        attempt: PendingAttempt | None = None
        if exchange.recorded:
            await self._turns.wait_settled(exchange.context.key)
            exchange, attempt = self._attempts.register(exchange)
        with self._turns.turn(exchange.context.key, call.guard()) as presence:
            outgoing = await self._first_attempt(call, exchange)
            outgoing, reply, recording = await self._upstream_caller.call_upstream(call, outgoing)
            if self._on_answered is not None and reply.status < 400:
                self._on_answered(call.caller.tenant, call.headers, call.upstream)
            recorder = None
            try:
                recorder = self._recorder(call, outgoing, reply, presence, recording)
                if recorder is not None and outgoing.exchange.response_fields is not None:
                    reply = RenamedReply(reply, outgoing.exchange.response_fields)
                # Free what was injected before the answer streams: that may take minutes.
                del exchange, outgoing, recording
                call.reservation.shrink_body(await recorder.reduce_messages() if recorder else 0)
                await self._deliver(call, reply, recorder)
            finally:
                if recorder is not None and recorder.recorded and attempt is not None:
                    self._attempts.forget(attempt)
                await reply.close()

    async def _first_attempt(self, call: ProxyRequest, exchange: ChatExchange) -> OutgoingRequest:
        """The request for the first attempt.  If the answer's id will have the session's reference,
        that is stored before the client can see it."""
        prepared = await prepare(exchange, self._services)
        outgoing = await self._upstream_caller.first_attempt(call, prepared)
        call.reservation.grow_body(outgoing.memory_bytes)
        key, ttl = exchange.context.key, exchange.context.profile.ttl
        has_reference = outgoing.exchange.response_fields is not None
        if has_reference and not self._services.recorder.is_spooling(key):
            await self._services.state.store_reference(key, ttl, outgoing.session_began)
        return outgoing

    async def _read(self, call: ProxyRequest) -> ChatExchange | UnreadBody:
        rules, session = self._profile_rules(call), call.identity.session
        body = await call.body(self._settings.server)
        plain = await call.decoded_body(body, self._settings.server, self._services.threads)
        if plain is None:
            return UnreadBody(session, body, "encoded_body")
        if session is None and not await self._resolve_session(call, plain):
            return UnreadBody(None, body, "not_chat")
        format = _format_of(call)
        read = partial(format.read, plain, rules.profile.max_inline_media_bytes)
        request = await self._services.threads.run(call.caller.tenant, len(plain), read)
        if not isinstance(request, ChatRequest):
            return UnreadBody(session, body, request)
        if format.is_side_request(request, call.headers):
            return UnreadBody(session, body, "side_request")
        context = self._context(call, rules)
        exchange = ChatExchange.start(format, request, plain, context, self._services)
        return exchange if plain is body else replace(exchange, wire_body=body)

    async def _resolve_session(self, call: ProxyRequest, body: bytes) -> bool:
        """Set the call's session to the one that its body names; False if it names none.  Raises
        ProxyError."""
        session = await self._session_resolver.session_of(call, body)
        if session is not None:
            call.identity = replace(call.identity, session=session)
        return session is not None

    def _profile_rules(self, call: ProxyRequest) -> ProfileRules:
        """Raises ProxyError 400 for a profile that does not exist."""
        rules = self._profiles.get(call.identity.profile)
        if rules is None:
            raise unknown_profile()
        return rules

    def _context(self, call: ProxyRequest, rules: ProfileRules) -> RequestContext:
        return RequestContext(
            key=call.key,
            identity=call.identity,
            profile_rules=rules,
            fails_closed=self._settings.store.on_failure == "closed",
        )

    def _recorder(
        self,
        call: ProxyRequest,
        outgoing: OutgoingRequest,
        reply: Reply,
        presence: DisconnectGuard,
        recording: Recording | None,
    ) -> ExchangeRecorder | None:
        """The recorder of the reply; None if the reply is not recorded."""
        if coding_of(reply.headers) != IDENTITY:
            outgoing = outgoing.unrecorded("encoded_body")
            call.report = outgoing.report
        assert call.report is not None  # set by ``UpstreamCaller.call_upstream``
        self._services.telemetry.count_injected_tokens(call.report.tokens)
        if not 200 <= reply.status < 300:
            return None
        presence.outlives_client = outgoing.drains
        return recording() if recording and outgoing.recorded else None

    async def _deliver(
        self, call: ProxyRequest, reply: Reply, recorder: ExchangeRecorder | None
    ) -> None:
        length = content_length(reply.headers)
        if recorder is not None and call.report and (length or 0) > MAX_PLAIN:
            call.report = replace(call.report, reason=TOO_LARGE)
        await call.delivery.start(reply.status, answer_headers(reply, call))
        if recorder is None:
            return await relay(reply, call.delivery, length)
        peeked = PeekedReply(reply)
        tap = await tap_of(peeked, recorder, _format_of(call))
        try:
            await tap.relay(peeked, call.delivery)
        except asyncio.CancelledError:  # the client has left, or the proxy is going down
            if call.delivery.bytes:
                await tap.abandon()
            raise


def _format_of(call: ProxyRequest) -> Format:
    format = call.route.format
    assert format is not None  # only calls to an API with a format get here
    return format
