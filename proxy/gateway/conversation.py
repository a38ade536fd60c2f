"""Chat completions with memory: prepare, ask the upstream, relay and record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from proxy.chat.limits import too_long
from proxy.chat.request import ChatRequest, Unread, read
from proxy.chat.tool_offer import refuses_tools
from proxy.errors import RawHeaders, unknown_profile
from proxy.gateway.account import Account
from proxy.gateway.call import Call
from proxy.gateway.exchange import ChatExchange, Means
from proxy.gateway.ledger import Ledger
from proxy.gateway.passage import Outgoing, Passage, answer_headers
from proxy.gateway.profile import SideRequests
from proxy.gateway.refusals import Refusals
from proxy.gateway.scribe import MAX_PLAIN, TOO_LARGE, PlainScribe, Scribe, StreamScribe
from proxy.gateway.situation import Situation
from proxy.gateway.tool_rounds import Rounds, followed
from proxy.gateway.tool_runs import MemoryTools
from proxy.gateway.tool_use import tool_use
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
    """Knows the profiles; makes an exchange of each call.

    ``on_answered`` is told the tenant and the headers of each call that the upstream answers well.
    """

    def __init__(
        self,
        settings: Settings,
        passage: Passage,
        means: Means,
        tools: MemoryTools | None = None,
        on_answered: Callable[[str, RawHeaders], None] | None = None,
    ) -> None:
        self._settings, self._passage, self._means = settings, passage, means
        self._on_answered = on_answered
        self._tools = tools
        self._refusals = Refusals()
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
            if self._on_answered is not None and reply.status < 400:
                self._on_answered(call.caller.tenant, call.headers)
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
        request = await self._read(call, body, situation.profile)
        if not isinstance(request, ChatRequest):
            call.account = Account(situation.key.session, reason=request)
            await self._passage.forward(call, body)
            return None
        call.model = request.model
        exchange = ChatExchange(request, body, situation, self._means)
        call.account = exchange.account
        await exchange.prepare()
        if self._tools is not None:
            count = self._means.counter(request.model).count_text
            offered = partial(tool_use, request, situation, exchange.account, count, exchange.began)
            exchange.tools = use = await self._means.aside.run(exchange.size, offered)
            if use is not None and use.kind in self._refusals:
                exchange.leave_tools()
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

    async def _read(
        self, call: Call, body: bytes, profile: ProfileSettings
    ) -> ChatRequest | Unread | Literal["encoded_body"]:
        if get(call.headers, b"content-encoding") not in (None, b"identity"):
            return "encoded_body"
        reading = partial(read, body, profile.max_inline_media_bytes)
        return await self._means.aside.run(len(body), reading)

    async def _ask(self, call: Call, exchange: ChatExchange) -> Reply:
        """Ask the upstream; where it refuses what memory added, again with less of it."""
        while True:
            body = await self._means.aside.run(exchange.size, partial(_body, exchange))
            rewritten = exchange.adds or exchange.tools is not None
            reply = await self._send(call, body, rewritten=rewritten)
            if exchange.refused is not None and reply.status < 400:
                self._refusals.add(exchange.refused)
            if not self._may_be_for_memory(exchange, reply):
                return await self._followed(call, exchange, body, reply)
            reply = PeekedReply(reply)
            if not await self._asks_less(exchange, reply):
                return reply
            await reply.close()

    async def _send(self, call: Call, body: bytes, *, rewritten: bool) -> Reply:
        reply = await self._passage.ask(call, Outgoing(body), rewritten=rewritten)
        return DecodedReply(reply) if DecodedReply.knows(encoding(reply.headers)) else reply

    async def _followed(
        self, call: Call, exchange: ChatExchange, body: bytes, reply: Reply
    ) -> Reply:
        """The reply, with the rounds of what the model asks of memory."""
        if exchange.tools is None or self._tools is None:
            return reply
        # The client's key is for one request to the upstream, and that has been sent.
        kept = [field for field in call.headers if field[0].lower() != b"idempotency-key"]
        again = replace(call, headers=kept)

        async def ask(further: bytes) -> Reply:
            return await self._send(again, further, rewritten=True)

        return await followed(reply, Rounds(body, exchange.tools, self._tools, ask))

    async def _asks_less(self, exchange: ChatExchange, reply: PeekedReply) -> bool:
        """Is an error for what memory added, and is there something to leave out?"""
        try:
            error = await reply.peek(MAX_ERROR)
        except BaseException:  # the client has left: nobody else would close it
            await reply.close()
            raise
        long = self._settings.upstream.retry_too_long and too_long(reply.status, error)
        if long and exchange.lessen():
            return True
        refused = refuses_tools(reply.status, error)
        if exchange.tools is None or not (long or refused):
            return False
        exchange.refused = exchange.tools.kind if refused else None
        exchange.leave_tools()
        return True

    def _may_be_for_memory(self, exchange: ChatExchange, reply: Reply) -> bool:
        if reply.status < 400 or (content_length(reply.headers) or 0) > MAX_ERROR:
            return False
        if exchange.tools is not None:
            return True
        return (
            self._settings.upstream.retry_too_long
            and exchange.account.status == "applied"
            and reply.status < 500
        )

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
        length = content_length(reply.headers)
        if ledger is not None and call.account and (length or 0) > MAX_PLAIN:
            call.account.reason = TOO_LARGE
        await call.delivery.start(reply.status, answer_headers(reply, call.account))
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


def _body(exchange: ChatExchange) -> bytes:
    """What the upstream gets."""
    body = exchange.upstream_body()
    return exchange.tools.put_into(body) if exchange.tools is not None else body
