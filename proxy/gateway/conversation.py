"""Chat completions with memory: prepare, ask the upstream, relay and record."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from proxy.chat.models.limits import too_long
from proxy.chat.request import ChatRequest
from proxy.chat.thoughts import refuses_thoughts, wants_thoughts, with_thoughts
from proxy.chat.tools.offer import refuses_tools
from proxy.errors import RawHeaders, unknown_profile
from proxy.formats.breakpoints import names_marks
from proxy.formats.format import Format
from proxy.gateway.aside import meanwhile
from proxy.gateway.context import ProfileRules, RequestContext
from proxy.gateway.dispatch.refusals import Refusals
from proxy.gateway.exchange import ChatExchange, Services
from proxy.gateway.outgoing import (
    OutgoingRequest,
    lessened,
    prepare,
    refused_marks,
    with_tools,
    without_marks,
    without_tools,
)
from proxy.gateway.passthrough import Passthrough, answer_headers
from proxy.gateway.recording.exchange_recorder import ExchangeRecorder, recorder_for
from proxy.gateway.recording.first_attempts import FirstAttempts, NotedAttempt
from proxy.gateway.recording.open_turns import OpenTurns
from proxy.gateway.recording.tap import MAX_PLAIN, TOO_LARGE, tap_of
from proxy.gateway.report import MemoryReport, Reason
from proxy.gateway.request import ProxyRequest
from proxy.gateway.state.naming import Naming
from proxy.gateway.state.renaming import RenamedReply
from proxy.gateway.thoughts import has_calls, with_stored_thoughts
from proxy.gateway.tools.rounds import Rounds, followed
from proxy.gateway.tools.toolbox import MemoryTools
from proxy.settings import Settings
from proxy.wire.headers import content_length
from proxy.wire.relay import Presence, relay
from proxy.wire.replies import PeekedReply, decoded, encoding
from proxy.wire.upstream import Reply

MAX_ERROR = 64 * 1024
"""Bytes of an upstream's error that are read to see whether the context was too long."""

_INVALID = (400, 422)

Recording = Callable[[], ExchangeRecorder]
"""Gives what a reply is to be recorded in: it is made while the upstream is waited for."""


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
        tools: MemoryTools | None = None,
        on_answered: Callable[[str, RawHeaders, str], None] | None = None,
    ) -> None:
        self._settings, self._passthrough, self._services = settings, passthrough, services
        self._on_answered = on_answered
        self._tools = tools
        self._naming = Naming(settings, services)
        self._turns, self._attempts = OpenTurns(), FirstAttempts()
        self._refusals: defaultdict[str, Refusals] = defaultdict(Refusals)
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
            outgoing, reply, recording = await self._ask(call, outgoing)
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
        outgoing = await self._offered(call, await prepare(exchange, self._services))
        outgoing = await self._thoughtful(call, outgoing)
        call.held.grow(outgoing.held)
        key, ttl = exchange.context.key, exchange.context.profile.ttl
        if outgoing.exchange.names is not None and not self._services.recorder.spools(key):
            await self._services.state.keep_name(key, ttl, outgoing.session_began)
        return self._marked(call, outgoing)

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

    async def _offered(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """With memory's tools, where there are any that this upstream has not refused."""
        if self._tools is None or not outgoing.exchange.context.profile.tools.enabled:
            return outgoing
        size = len(outgoing.exchange.body)
        offering = await self._services.aside.run(size, partial(with_tools, outgoing))
        use = offering.tools
        refused = use is not None and use.kind in self._refusals[call.upstream]
        return without_tools(offering) if refused else offering

    def _marked(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """With cache marks, where they are wanted and this upstream has not refused them."""
        kind = outgoing.marking
        if kind is None:
            return outgoing
        if kind in self._refusals[call.upstream]:
            return without_marks(outgoing)
        return replace(outgoing, marks=True)

    async def _thoughtful(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """With what earlier answers thought, where this upstream is known to want it."""
        known = self._wants_thoughts(call, outgoing)
        if not (known and has_calls(outgoing)):
            return outgoing
        return await with_stored_thoughts(outgoing, self._services)

    def _wants_thoughts(self, call: ProxyRequest, outgoing: OutgoingRequest) -> bool:
        kind = outgoing.thoughtless
        return kind is not None and kind in self._refusals[call.upstream]

    async def _ask(
        self, call: ProxyRequest, outgoing: OutgoingRequest
    ) -> tuple[OutgoingRequest, Reply, Recording | None]:
        """Ask the upstream; where it refuses what memory added, again with less of it.

        The request that it took, or refused for another reason, its reply, and, where it is
        to be recorded, in what.
        """
        while True:
            call.report = outgoing.report
            body = await self._services.aside.run(len(outgoing.exchange.body), outgoing.body)
            record = partial(recorder_for, outgoing, call.report, self._services)
            recording = meanwhile(record) if outgoing.recorded else None
            reply = await self._send(call, body, rewritten=outgoing.rewritten)
            if reply.status < 400:
                for kind in outgoing.refused:
                    self._refusals[call.upstream].add(kind)
            if not self._may_be_for_memory(outgoing, reply):
                reply = await self._followed(call, outgoing, body, reply)
                return outgoing, reply, recording
            reply = PeekedReply(reply)
            less = await self._less(call, outgoing, reply, body)
            if less is None:
                return outgoing, reply, recording
            await reply.close()
            outgoing = less

    async def _send(self, call: ProxyRequest, body: bytes, *, rewritten: bool) -> Reply:
        return decoded(await self._passthrough.ask(call, body, rewritten=rewritten))

    async def _followed(
        self, call: ProxyRequest, outgoing: OutgoingRequest, body: bytes, reply: Reply
    ) -> Reply:
        """The reply, with the rounds of what the model asks of memory."""
        if outgoing.tools is None or self._tools is None:
            return reply
        # The client's key is for one request to the upstream, and that has been sent.
        kept = [field for field in call.headers if field[0].lower() != b"idempotency-key"]
        again = replace(call, headers=kept)

        async def ask(further: bytes) -> Reply:
            return await self._asked_on(again, outgoing, further)

        return await followed(reply, Rounds(body, outgoing.tools, self._tools, ask))

    async def _asked_on(self, call: ProxyRequest, outgoing: OutgoingRequest, body: bytes) -> Reply:
        """The reply to a further round; it is asked once more where it lacks thoughts.  What a
        model called without thinking has none that could be sent back."""
        kind, unthought = outgoing.thoughtless, partial(with_thoughts, body, {})
        known = self._wants_thoughts(call, outgoing)
        sent = await self._services.aside.run(len(body), unthought) if known else body
        reply = await self._send(call, sent, rewritten=True)
        if known or kind is None or reply.status not in _INVALID or not _is_small(reply):
            return reply
        reply = PeekedReply(reply)
        if not wants_thoughts(await _error_in(reply)):
            return reply
        await reply.close()
        sent = await self._services.aside.run(len(body), unthought)
        reply = await self._send(call, sent, rewritten=True)
        if reply.status < 400:
            self._refusals[call.upstream].add(kind)
        return reply

    def _may_be_for_memory(self, outgoing: OutgoingRequest, reply: Reply) -> bool:
        if reply.status < 400 or not _is_small(reply):
            return False
        if outgoing.tools is not None or outgoing.marks or outgoing.exchange.format.signed:
            return True
        if outgoing.thoughtless is not None and reply.status in _INVALID:
            return True
        return self._settings.upstream.retry_too_long and outgoing.adds and reply.status < 500

    async def _rethought(
        self, call: ProxyRequest, outgoing: OutgoingRequest, status: int, error: bytes
    ) -> OutgoingRequest | None:
        """The request with what earlier answers thought, or without, if an error is for that."""
        kind = outgoing.thoughtless
        if kind is None or outgoing.rethought or status not in _INVALID:
            return None
        if outgoing.thoughts is None and wants_thoughts(error):
            thoughtful = await with_stored_thoughts(outgoing, self._services)
            return replace(thoughtful, rethought=True, refused=(*outgoing.refused, kind))
        if outgoing.thoughts is not None and refuses_thoughts(error):
            self._refusals[call.upstream].discard(kind)
            return replace(outgoing, thoughts=None, rethought=True)
        return None

    async def _less(
        self, call: ProxyRequest, outgoing: OutgoingRequest, reply: PeekedReply, body: bytes
    ) -> OutgoingRequest | None:
        """The request with less of memory, or with what the upstream wants back of it, if an error
        is for that and there is such."""
        error = await _error_in(reply)
        invalid = outgoing.marks and reply.status in _INVALID and names_marks(body)
        if invalid and names_marks(error):
            return refused_marks(outgoing)
        unsign = partial(outgoing.exchange.format.unsigned, body, reply.status, error)
        unsigned = await self._services.aside.run(len(body), unsign)
        if unsigned is not None:
            return replace(outgoing, unsigned=unsigned)
        rethought = await self._rethought(call, outgoing, reply.status, error)
        if rethought is not None:
            return rethought
        long = self._settings.upstream.retry_too_long and too_long(reply.status, error)
        less = lessened(outgoing, self._services) if long else None
        if less is not None:
            return less
        refused = refuses_tools(reply.status, error)
        if outgoing.tools is not None and (long or refused):
            return without_tools(outgoing, *([outgoing.tools.kind] if refused else []))
        # The marks may be refused without being named: texts had to become lists for them.
        return refused_marks(outgoing) if invalid else None

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
        assert call.report is not None  # ``_ask`` has made it
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


def _is_small(reply: Reply) -> bool:
    """May an error be read, as far as it says how large it is?"""
    return (content_length(reply.headers) or 0) <= MAX_ERROR


async def _error_in(reply: PeekedReply) -> bytes:
    """What it says; closes it where the client leaves meanwhile."""
    try:
        return await reply.peek(MAX_ERROR)
    except BaseException:  # nobody else would close it
        await reply.close()
        raise


def _format_of(call: ProxyRequest) -> Format:
    format = call.route.format
    assert format is not None  # else the call would not be remembered
    return format
