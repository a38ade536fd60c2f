"""Calls the upstream with what memory adds, and again with less if it refuses that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from proxy.chat.media.words import may_refuse_media, names_media, refuses_media
from proxy.chat.models.limits import is_context_error
from proxy.chat.parameters import is_about_parameters
from proxy.chat.reasoning import demands_reasoning, refuses_reasoning, with_reasoning
from proxy.chat.tools.offer import refuses_tools
from proxy.formats.breakpoints import names_marks
from proxy.gateway.asking.reasoning import sends_calls, with_stored_reasoning
from proxy.gateway.asking.refusals import KnownRefusals
from proxy.gateway.exchange import Services
from proxy.gateway.offload import run_soon
from proxy.gateway.outgoing import (
    OutgoingRequest,
    after_marks_error,
    after_media_error,
    with_less_memory,
    with_tools,
    without_marks,
    without_refused_media,
    without_tools,
)
from proxy.gateway.passthrough import Passthrough
from proxy.gateway.recording.exchange_recorder import ExchangeRecorder, recorder_for
from proxy.gateway.request import ProxyRequest
from proxy.gateway.tools.rounds import Rounds, with_tool_rounds
from proxy.gateway.tools.toolbox import MemoryTools
from proxy.wire.headers import content_length
from proxy.wire.replies import PeekedReply, decoded
from proxy.wire.upstream import Reply

MAX_ERROR = 64 * 1024
"""Bytes of an upstream's error that are read to see whether the context was too long."""

_INVALID = (400, 422)

T = TypeVar("T")
Recording = Callable[[], ExchangeRecorder]
"""Returns the recorder of a reply, which is made while waiting for the upstream."""


class UpstreamCaller:
    """Calls the upstream; remembers for a while what each one refuses of memory.

    ``retry_too_long``: call again with less if the upstream finds the context too long.
    """

    def __init__(
        self,
        passthrough: Passthrough,
        services: Services,
        tools: MemoryTools,
        *,
        retry_too_long: bool,
    ) -> None:
        self._passthrough, self._services, self._tools = passthrough, services, tools
        self._retry_too_long = retry_too_long
        self._refusals = KnownRefusals()

    async def first_attempt(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """The request with all enabled additions that its upstream is not known to refuse."""
        outgoing = await self._with_tools(call, await self._without_refused_media(call, outgoing))
        return self._with_marks(call, await self._with_reasoning(call, outgoing))

    async def _without_refused_media(
        self, call: ProxyRequest, outgoing: OutgoingRequest
    ) -> OutgoingRequest:
        """The request without media in stored messages if the upstream has refused them before."""
        exchange = outgoing.exchange
        refused = self._refusals.media(call.upstream, exchange.context.key, exchange.request.model)
        if not (refused and outgoing.adds_memory):
            return outgoing
        return await self._in_thread(
            outgoing, outgoing.memory_bytes, partial(without_refused_media, outgoing, refused)
        )

    async def _with_tools(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """The request with memory's tools, if enabled and not refused before."""
        if not outgoing.exchange.context.profile.tools.enabled:
            return outgoing
        size = len(outgoing.exchange.body)
        with_offer = await self._in_thread(outgoing, size, partial(with_tools, outgoing))
        tool_use = with_offer.tools
        refused = tool_use is not None and tool_use.refusal in self._refusals.of(call.upstream)
        return without_tools(with_offer) if refused else with_offer

    def _with_marks(self, call: ProxyRequest, outgoing: OutgoingRequest) -> OutgoingRequest:
        """The request with cache marks, if enabled and not refused before."""
        kind = outgoing.marks_refusal
        if kind is None:
            return outgoing
        if kind in self._refusals.of(call.upstream):
            return without_marks(outgoing)
        return replace(outgoing, adds_marks=True)

    async def _with_reasoning(
        self, call: ProxyRequest, outgoing: OutgoingRequest
    ) -> OutgoingRequest:
        """The request with earlier answers' reasoning, if its upstream is known to demand it."""
        is_demanded = self._demands_reasoning(call, outgoing)
        if not (is_demanded and sends_calls(outgoing)):
            return outgoing
        return await with_stored_reasoning(outgoing, self._services)

    def _demands_reasoning(self, call: ProxyRequest, outgoing: OutgoingRequest) -> bool:
        kind = outgoing.reasoning_refusal
        return kind is not None and kind in self._refusals.of(call.upstream)

    async def call_upstream(
        self, call: ProxyRequest, outgoing: OutgoingRequest
    ) -> tuple[OutgoingRequest, Reply, Recording | None]:
        """Call the upstream, and again with less of memory as long as it refuses that.

        Returns the last request, its reply, and the recorder if the exchange is to be recorded.
        """
        first = outgoing
        while True:
            call.report = outgoing.report
            body = await self._in_thread(outgoing, len(outgoing.exchange.body), outgoing.body)
            record = partial(recorder_for, outgoing, call.report, self._services)
            recording = run_soon(record) if outgoing.recorded else None
            reply = await self._send(call, body, rewritten=outgoing.rewritten)
            if reply.status < 400:
                key = outgoing.exchange.context.key
                self._refusals.add(call.upstream, key, outgoing.refusals)
            if not self._may_refuse_memory(outgoing, reply):
                reply = await self._with_tool_rounds(call, outgoing, body, reply)
                return outgoing, reply, recording
            reply = PeekedReply(reply)
            reduced = await self._changed_for_error(call, outgoing, first, reply, body)
            if reduced is None:
                return outgoing, reply, recording
            await reply.close()
            outgoing = reduced

    async def _send(self, call: ProxyRequest, body: bytes, *, rewritten: bool) -> Reply:
        return decoded(await self._passthrough.send_upstream(call, body, rewritten=rewritten))

    async def _with_tool_rounds(
        self, call: ProxyRequest, outgoing: OutgoingRequest, body: bytes, reply: Reply
    ) -> Reply:
        """The reply after the model's calls of memory's tools have been run."""
        if outgoing.tools is None:
            return reply
        # An idempotency key is for one request: the further rounds are others.
        headers = [field for field in call.headers if field[0].lower() != b"idempotency-key"]
        follow_up = replace(call, headers=headers)
        send = partial(self._call_for_round, follow_up, outgoing)
        return await with_tool_rounds(reply, Rounds(body, outgoing.tools, self._tools, send))

    async def _call_for_round(
        self, call: ProxyRequest, outgoing: OutgoingRequest, body: bytes
    ) -> Reply:
        """The reply to a further round.

        If the upstream demands reasoning, it is called again with empty reasoning where calls have
        none.
        """
        kind, add_reasoning = outgoing.reasoning_refusal, partial(with_reasoning, body, {})
        is_demanded = self._demands_reasoning(call, outgoing)
        if is_demanded:
            body = await self._in_thread(outgoing, len(body), add_reasoning)
        reply = await self._send(call, body, rewritten=True)
        if is_demanded or kind is None or reply.status not in _INVALID or not _is_small(reply):
            return reply
        reply = PeekedReply(reply)
        if not demands_reasoning(await _read_error(reply)):
            return reply
        await reply.close()
        body = await self._in_thread(outgoing, len(body), add_reasoning)
        reply = await self._send(call, body, rewritten=True)
        if reply.status < 400:
            self._refusals.of(call.upstream).add(kind)
        return reply

    def _may_refuse_memory(self, outgoing: OutgoingRequest, reply: Reply) -> bool:
        if reply.status < 400 or not _is_small(reply):
            return False
        may_have_signed = outgoing.exchange.format.has_signed_content
        if outgoing.tools is not None or outgoing.adds_marks or may_have_signed:
            return True
        if outgoing.reasoning_refusal is not None and reply.status in _INVALID:
            return True
        may_be_too_long = self._retry_too_long and reply.status < 500
        return outgoing.adds_memory and (may_be_too_long or may_refuse_media(reply.status))

    async def _with_reasoning_changed(
        self, call: ProxyRequest, outgoing: OutgoingRequest, status: int, error: bytes
    ) -> OutgoingRequest | None:
        """The request with earlier answers' reasoning, or without, if the error is about that."""
        kind = outgoing.reasoning_refusal
        if kind is None or outgoing.reasoning_retried or status not in _INVALID:
            return None
        if outgoing.reasoning is None and demands_reasoning(error):
            changed = await with_stored_reasoning(outgoing, self._services)
            refusals = (*outgoing.refusals, kind)
            return replace(changed, reasoning_retried=True, refusals=refusals)
        if outgoing.reasoning is not None and refuses_reasoning(error):
            self._refusals.of(call.upstream).discard(kind)
            return replace(outgoing, reasoning=None, reasoning_retried=True)
        return None

    async def _changed_for_error(
        self,
        call: ProxyRequest,
        outgoing: OutgoingRequest,
        first: OutgoingRequest,
        reply: PeekedReply,
        body: bytes,
    ) -> OutgoingRequest | None:
        """The request changed in the way that the error asks for: with less of memory, or with the
        reasoning that is missing; at last with stored media as lines of text.  None if the
        error is not about what memory adds."""
        status, error = reply.status, await _read_error(reply)
        may_be_about_marks = outgoing.adds_marks and status in _INVALID and names_marks(body)
        changed = (
            (after_marks_error(outgoing) if may_be_about_marks and names_marks(error) else None)
            or await self._without_signed(outgoing, body, status, error)
            or await self._with_reasoning_changed(call, outgoing, status, error)
            or self._with_less_memory(outgoing, status, error)
        )
        if changed or _is_about_client_fields(outgoing, error):
            return changed
        # An error about marks need not name them: they turn a text content into a list.
        if may_be_about_marks:
            return after_marks_error(outgoing)
        return await self._without_media(outgoing, first, status, error)

    async def _without_signed(
        self, outgoing: OutgoingRequest, body: bytes, status: int, error: bytes
    ) -> OutgoingRequest | None:
        remove_signed = partial(outgoing.exchange.format.without_signed, body, status, error)
        changed = await self._in_thread(outgoing, len(body), remove_signed)
        return None if changed is None else replace(outgoing, body_without_signed=changed)

    def _with_less_memory(
        self, outgoing: OutgoingRequest, status: int, error: bytes
    ) -> OutgoingRequest | None:
        """With less of memory if it is too long; without tools if that is not enough, or if they
        are refused."""
        is_too_long = self._retry_too_long and is_context_error(status, error)
        reduced = with_less_memory(outgoing, self._services) if is_too_long else None
        if reduced is not None or outgoing.tools is None:
            return reduced
        refused = [outgoing.tools.refusal] if refuses_tools(status, error) else []
        return without_tools(outgoing, *refused) if is_too_long or refused else None

    async def _without_media(
        self, outgoing: OutgoingRequest, first: OutgoingRequest, status: int, error: bytes
    ) -> OutgoingRequest | None:
        if not (outgoing.adds_memory and refuses_media(status, error)):
            return None
        return await self._in_thread(
            outgoing, outgoing.memory_bytes, partial(after_media_error, outgoing, first)
        )

    async def _in_thread(self, outgoing: OutgoingRequest, size: int, work: Callable[[], T]) -> T:
        """``work`` on a request, in a thread if these bytes are many."""
        return await self._services.threads.run(outgoing.exchange.context.key.tenant, size, work)


def _is_about_client_fields(outgoing: OutgoingRequest, error: bytes) -> bool:
    """Whether an error is about the client's own parameters."""
    fields = outgoing.exchange.request.fields
    return is_about_parameters(error, fields) and not names_media(error)


def _is_small(reply: Reply) -> bool:
    """Whether an error's declared length, if any, is at most ``MAX_ERROR``."""
    return (content_length(reply.headers) or 0) <= MAX_ERROR


async def _read_error(reply: PeekedReply) -> bytes:
    """The body of an error, up to ``MAX_ERROR`` bytes; closes the reply if that is cancelled."""
    try:
        return await reply.peek(MAX_ERROR)
    except BaseException:  # the caller does not close it then
        await reply.close()
        raise
