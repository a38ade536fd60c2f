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
from proxy.gateway.asking.asker import Asker, Recording
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.exchange import ChatExchange, Services
from proxy.gateway.outgoing import OutgoingRequest, prepare
from proxy.gateway.passthrough import Passthrough, answer_headers
from proxy.gateway.recording.exchange_recorder import ExchangeRecorder
from proxy.gateway.recording.first_attempts import FirstAttempts, NotedAttempt
from proxy.gateway.recording.open_turns import OpenTurns
from proxy.gateway.recording.tap import MAX_PLAIN, TOO_LARGE, tap_of
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.request import ProxyRequest
from proxy.gateway.state.naming import Naming
from proxy.gateway.state.renaming import RenamedReply
from proxy.settings import Settings
from proxy.wire.headers import content_length
from proxy.wire.relay import Presence, relay
from proxy.wire.replies import PeekedReply, encoding
from proxy.wire.upstream import Reply


class UnreadBody(NamedTuple):
    """A body that memory has no part in, and why.  ``session``: None where there is none."""

    session: str | None
    body: bytes
    reason: Reason


class Conversations:
    """Knows the profiles; makes an exchange of each call.

    ``on_answered`` is told the tenant, the headers and the upstream's name ("" for [upstream]) of
    each call that is answered well.
    """

    def __init__(
        self,
        settings: Settings,
        passthrough: Passthrough,
        services: Services,
        asker: Asker,
        on_answered: Callable[[str, RawHeaders, str], None] | None,
    ) -> None:
        self._settings, self._passthrough, self._services = settings, passthrough, services
        self._asker, self._on_answered = asker, on_answered
        self._naming = Naming(settings, services)
        self._turns, self._attempts = OpenTurns(), FirstAttempts()
        self._profiles = {
            name: ProfileRules.of(profile)
            for name, profile in [("", settings.memory), *settings.profiles.items()]
        }

    def serves(self, call: ProxyRequest) -> bool:
        """Has a call a session, or may its body name one?"""
        return call.remembers or self._naming.applies(call)

    async def serve(self, call: ProxyRequest) -> None:
        """Answer a call.  Raises ProxyError, UpstreamError and ClientGone before the answer."""
        exchange = await self._read(call)
        if isinstance(exchange, UnreadBody):
            if exchange.session is not None:
                call.report = MemoryReport(exchange.session, reason=exchange.reason)
            return await self._passthrough.forward(call, exchange.body)
        call.model = exchange.request.model
        if call.report is not None:  # else nobody has named the session: it is told with the answer
            call.report = exchange.report
        self._passthrough.choose(call, call.model)
        attempt: NotedAttempt | None = None
        if exchange.recorded:
            await self._turns.settled(exchange.context.key)
            exchange, attempt = self._attempts.placed(exchange)
        outgoing = await self._prepared(call, exchange)
        with self._turns.turn(exchange.context.key, Presence(call.receive)) as presence:
            call.delivery.presence = presence
            outgoing, reply, recording = await self._asker.ask(call, outgoing)
            if self._on_answered is not None and reply.status < 400:
                self._on_answered(call.caller.tenant, call.headers, call.upstream)
            recorder = None
            try:
                recorder = self._recorder(call, outgoing, reply, presence, recording)
                if recorder is not None and outgoing.exchange.names is not None:
                    reply = RenamedReply(reply, outgoing.exchange.names)
                # What was injected is not held while the answer streams: that may take minutes.
                del exchange, outgoing, recording
                call.held.lessen(await recorder.kept() if recorder else 0)
                await self._deliver(call, reply, recorder)
            finally:
                if recorder is not None and recorder.recorded and attempt is not None:
                    self._attempts.recorded(attempt)
                await reply.close()

    async def _prepared(self, call: ProxyRequest, exchange: ChatExchange) -> OutgoingRequest:
        """The exchange as its upstream is asked first; where it will be told a name of the session,
        that leads there from now on."""
        outgoing = await self._asker.first(call, await prepare(exchange, self._services))
        call.held.grow(outgoing.held)
        key, ttl = exchange.context.key, exchange.context.profile.ttl
        if outgoing.exchange.names is not None and not self._services.recorder.spools(key):
            await self._services.state.keep_name(key, ttl, outgoing.session_began)
        return outgoing

    async def _read(self, call: ProxyRequest) -> ChatExchange | UnreadBody:
        usual, told = self._usual(call), call.identity.session
        body = await call.body(self._settings.server)
        plain = await call.plain(body, self._settings.server, self._services.aside)
        if plain is None:
            return UnreadBody(told, body, "encoded_body")
        if told is None and not await self._name(call, plain):
            return UnreadBody(None, body, "not_chat")
        format = _format_of(call)
        reading = partial(format.read, plain, usual.profile.max_inline_media_bytes)
        request = await self._services.aside.run(len(plain), reading)
        if not isinstance(request, ChatRequest):
            return UnreadBody(told, body, request)
        if format.is_aside(request, call.headers):
            return UnreadBody(told, body, "side_request")
        context = self._context(call, usual)
        exchange = ChatExchange.begun(format, request, plain, context, self._services)
        return exchange if plain is body else replace(exchange, came=body)

    async def _name(self, call: ProxyRequest, body: bytes) -> bool:
        """Does the body name a session?  Then the call has it.  Raises ProxyError."""
        session = await self._naming.session_of(call, body)
        if session is not None:
            call.identity = replace(call.identity, session=session)
        return session is not None

    def _usual(self, call: ProxyRequest) -> ProfileRules:
        """What the profile of a call means.  Raises ProxyError 400."""
        usual = self._profiles.get(call.identity.profile)
        if usual is None:
            raise unknown_profile()
        return usual

    def _context(self, call: ProxyRequest, usual: ProfileRules) -> RequestContext:
        return RequestContext(
            key=call.key,
            identity=call.identity,
            usual=usual,
            closed=self._settings.store.on_failure == "closed",
        )

    def _recorder(
        self,
        call: ProxyRequest,
        outgoing: OutgoingRequest,
        reply: Reply,
        presence: Presence,
        recording: Recording | None,
    ) -> ExchangeRecorder | None:
        """What the reply is to be recorded in; None if it is not."""
        if encoding(reply.headers) != b"identity":
            outgoing = outgoing.unrecorded("encoded_body")
            call.report = outgoing.report
        assert call.report is not None  # ``Asker.ask`` has made it
        self._services.telemetry.injected(call.report.tokens)
        if not 200 <= reply.status < 300:
            return None
        presence.patient = outgoing.drains
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
    assert format is not None  # else the call would not be remembered
    return format
