"""Chat completions with memory: prepare, ask the upstream, relay and record."""

from __future__ import annotations

import asyncio

from proxy.chat.limits import too_long
from proxy.chat.request import ChatRequest, parse
from proxy.errors import unknown_profile
from proxy.gateway.account import Account
from proxy.gateway.call import Call
from proxy.gateway.exchange import ChatExchange, Means
from proxy.gateway.ledger import Ledger
from proxy.gateway.passage import Outgoing, Passage, answer_headers
from proxy.gateway.profile import SideRequests
from proxy.gateway.scribe import PlainScribe, Scribe, StreamScribe
from proxy.gateway.situation import Situation
from proxy.memory.model import SessionKey
from proxy.settings import ProfileSettings, Settings
from proxy.wire import body as bodies
from proxy.wire.headers import content_length, get
from proxy.wire.relay import Presence, relay
from proxy.wire.replies import DecodedReply, PeekedReply, encoding, is_event_stream
from proxy.wire.upstream import Reply

MAX_ERROR = 64 * 1024
"""Bytes of an upstream's error that are read to see whether the context was too long."""


class Conversations:
    """Knows the profiles; makes an exchange of each call."""

    def __init__(self, settings: Settings, passage: Passage, means: Means) -> None:
        self._settings, self._passage, self._means = settings, passage, means
        self._sides = {
            name: SideRequests(profile.side_requests)
            for name, profile in [("", settings.memory), *settings.profiles.items()]
        }

    async def serve(self, call: Call) -> None:
        """Answer a call.  Raises ProxyError, UpstreamError and ClientGone before the answer."""
        exchange = await self._prepared(call)
        if exchange is None:
            return
        with Presence(call.receive) as presence:
            call.delivery.presence = presence
            reply = await self._ask(call, exchange)
            try:
                ledger = self._sent(exchange, reply, presence)
                del exchange  # and all that was injected: a stream may last for minutes
                await self._deliver(call, reply, ledger)
            finally:
                await reply.close()

    async def _prepared(self, call: Call) -> ChatExchange | None:
        """The exchange, ready to be sent; None for a body without messages: it was passed on."""
        situation = self._situation(call)
        server = self._settings.server
        declared = content_length(call.headers)
        body = await bodies.read(call.receive, server.max_body_bytes, server.body_timeout, declared)
        request, reason = self._read(call, body, situation.profile)
        if request is None:
            call.account = Account(situation.key.session, reason=reason)
            await self._passage.forward(call, body)
            return None
        exchange = ChatExchange(request, body, situation, self._means)
        call.account = exchange.account
        await exchange.prepare()
        return exchange

    def _situation(self, call: Call) -> Situation:
        identity = call.identity
        profile = self._settings.profile(identity.profile or None)
        if profile is None:
            raise unknown_profile()
        assert identity.session is not None
        return Situation(
            key=SessionKey(call.caller.tenant, identity.session),
            identity=identity,
            profile=profile,
            side=self._sides[identity.profile],
            closed=self._settings.store.on_failure == "closed",
        )

    def _read(
        self, call: Call, body: bytes, profile: ProfileSettings
    ) -> tuple[ChatRequest | None, str]:
        if get(call.headers, b"content-encoding") not in (None, b"identity"):
            return None, "encoded_body"
        return parse(body, profile.max_inline_media_bytes), "invalid_body"

    async def _ask(self, call: Call, exchange: ChatExchange) -> Reply:
        """Ask the upstream; where the context was too long, again with less memory."""
        while True:
            out = Outgoing(exchange.upstream_body())
            reply = await self._passage.ask(call, out, rewritten=exchange.adds)
            if DecodedReply.knows(encoding(reply.headers)):
                reply = DecodedReply(reply)
            if not self._may_be_too_long(exchange, reply):
                return reply
            reply = PeekedReply(reply)
            if not await self._is_too_long(reply) or not exchange.lessen():
                return reply
            await reply.close()

    async def _is_too_long(self, reply: PeekedReply) -> bool:
        try:
            return too_long(reply.status, await reply.peek(MAX_ERROR))
        except BaseException:  # the client has left: nobody else would close it
            await reply.close()
            raise

    def _may_be_too_long(self, exchange: ChatExchange, reply: Reply) -> bool:
        if not self._settings.upstream.retry_too_long or exchange.account.status != "applied":
            return False
        return 400 <= reply.status < 500 and (content_length(reply.headers) or 0) <= MAX_ERROR

    def _sent(self, exchange: ChatExchange, reply: Reply, presence: Presence) -> Ledger | None:
        """What the reply is to be recorded in; None if it is not."""
        self._means.telemetry.injected(exchange.account.tokens)
        if encoding(reply.headers) != b"identity":
            exchange.give_up("encoded_body")
        if not 200 <= reply.status < 300:
            return None
        presence.patient = exchange.drains
        return exchange.sent()

    async def _deliver(self, call: Call, reply: Reply, ledger: Ledger | None) -> None:
        await call.delivery.start(reply.status, answer_headers(reply, call.account))
        length = content_length(reply.headers)
        if ledger is None:
            return await relay(reply, call.delivery, length)
        scribe: Scribe
        if is_event_stream(reply.headers):
            scribe = StreamScribe(ledger)
        else:
            scribe = PlainScribe(ledger, length)
        try:
            await scribe.relay(reply, call.delivery)
        except asyncio.CancelledError:  # the client has left, or the proxy is going down
            if call.delivery.bytes:
                await scribe.abandon()
            raise
