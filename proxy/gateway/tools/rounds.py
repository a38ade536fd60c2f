"""The tool rounds of one answer: runs the model's calls of memory's tools and calls the upstream
again with the results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from proxy.chat.tools.answer import RoundJoiner, memory_calls_in
from proxy.chat.tools.memory_calls import MemoryCalls
from proxy.chat.tools.offer import RoundRequests
from proxy.chat.tools.stream import Continuation, ToolCallFilter
from proxy.chat.usage import add_usages
from proxy.gateway.tools.events import Bytes, EventSplitter, StreamEvent
from proxy.gateway.tools.toolbox import MemoryTools, ToolRunner
from proxy.gateway.tools.use import ToolUse
from proxy.wire.coding.decoding import IDENTITY, coding_of
from proxy.wire.failures import UpstreamBroken
from proxy.wire.headers import without_body_headers
from proxy.wire.replies import PeekedReply, WrappedReply, is_event_stream, is_stream
from proxy.wire.reply import READ_LIMIT
from proxy.wire.upstream import Reply

SendBody = Callable[[bytes], Awaitable[Reply]]
"""Sends a body upstream; raises UpstreamError."""

CONTENT_REFUSALS = (400, 413, 422)
"""Statuses of an upstream for which a round is repeated without memory's results."""


class Rounds:
    """The rounds that follow ``first_request``."""

    def __init__(
        self, first_request: bytes, use: ToolUse, tools: MemoryTools, send: SendBody
    ) -> None:
        self._use, self._send = use, send
        self._runner = ToolRunner(tools, use.context, use.names, use.log)
        self._requests = RoundRequests(first_request, use.client_tools)
        self._number = 1

    async def run(self, calls: MemoryCalls) -> Reply | None:
        """Run the calls of an answer and return the reply to the next request.

        None if the answer ends here: the client must answer calls of its own tools, or the round
        had offered none of ours.  If the upstream refuses the request with memory's results, the
        client's own request is sent instead.  Raises UpstreamError.
        """
        if self._number > self._use.rounds:
            self._runner.refuse(self._number, calls)
            return None
        results = await self._runner.run(self._number, calls)
        if calls.has_client_calls:
            return None
        self._number += 1
        self._requests.add(calls.message, results)
        reply = await self._send(self._requests.body(offer_tools=self._number <= self._use.rounds))
        if reply.status not in CONTENT_REFUSALS:
            return reply
        await reply.close()
        self._number = self._use.rounds + 1
        return await self._send(self._requests.request_without_tools())


class ToolStream(WrappedReply):
    """A ``wire.Reply`` that joins the streams of all rounds."""

    def __init__(self, reply: Reply, rounds: Rounds) -> None:
        super().__init__(reply)
        self._rounds = rounds
        self.headers = without_body_headers(reply.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes for the client, each piece as soon as it arrives.  Raises UpstreamError, also
        if a further round is not answered with a stream."""
        call_filter = ToolCallFilter[StreamEvent]()
        continuation: Continuation[StreamEvent] | None = None
        usage: bytes | None = None
        texts: dict[str, str] = {}
        while True:
            events = EventSplitter()
            async for data in self._reply.chunks():
                if visible := _visible_bytes(events.feed(data), call_filter, continuation):
                    yield visible
            if visible := _visible_bytes(events.close(), call_filter, continuation):
                yield visible
            calls = call_filter.memory_calls()
            if calls is None or not await self._next_round(calls):
                break
            usage = add_usages(usage, calls.usage)
            texts |= calls.texts()
            continuation = Continuation(
                continuation.identity if continuation else call_filter.identity, usage, texts
            )
            call_filter = ToolCallFilter()
        if rest := _continued_bytes(call_filter.held_events(), continuation):
            yield rest

    async def _next_round(self, calls: MemoryCalls) -> bool:
        await self._reply.close()
        reply = await self._rounds.run(calls)
        if reply is None:
            return False
        self._reply = peeked = PeekedReply(reply)
        if not _is_good(reply) or not await is_stream(peeked):
            raise UpstreamBroken(f"the answer does not go on: status {reply.status}")
        return True


class JoinedReply(WrappedReply):
    """A ``wire.Reply`` with the JSON body that joins all rounds."""

    def __init__(self, reply: Reply, body: bytes) -> None:
        super().__init__(reply)
        self._body = body
        length = (b"content-length", b"%d" % len(body))
        self.headers = [*without_body_headers(reply.headers), length]

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


async def with_tool_rounds(reply: Reply, rounds: Rounds) -> Reply:
    """The reply for the client.  A JSON reply is returned after all its rounds, a stream at once.
    Raises UpstreamError."""
    if not _is_good(reply):
        return reply
    if is_event_stream(reply.headers):  # without waiting for its first bytes
        return ToolStream(reply, rounds)
    peeked = PeekedReply(reply)
    try:
        streaming = await is_stream(peeked)
    except BaseException:  # cancelled: the caller does not have the reply to close
        await reply.close()
        raise
    return ToolStream(peeked, rounds) if streaming else await _join_json_rounds(peeked, rounds)


async def _join_json_rounds(first: Reply, rounds: Rounds) -> Reply:
    """``with_tool_rounds`` for a JSON reply; ``first`` itself, byte for byte, if it calls no tool
    of ours.

    An error of a further round is returned unchanged.  Raises UpstreamError; closes all replies
    that it does not return.
    """
    peeked = PeekedReply(first)
    reply: Reply = peeked
    joiner = RoundJoiner()
    try:
        body = await peeked.peek(READ_LIMIT)
        while (calls := memory_calls_in(body)) is not None:
            await reply.close()
            next_reply = await rounds.run(calls)
            if next_reply is None:
                return JoinedReply(reply, joiner.joined_answer(body))
            joiner.add(body)
            reply = next_reply
            if not _is_good(reply):
                return reply
            body = await reply.read(READ_LIMIT)
        return peeked if reply is peeked else JoinedReply(reply, joiner.joined_answer(body))
    except BaseException:  # cancelled or failed: the caller does not have the reply to close
        await reply.close()
        raise


def _visible_bytes(
    events: Iterable[Bytes | StreamEvent],
    call_filter: ToolCallFilter[StreamEvent],
    continuation: Continuation[StreamEvent] | None,
) -> bytes:
    """The bytes of finished events that the client may see."""
    pieces: list[bytes] = []
    for event in events:
        if isinstance(event, Bytes):
            pieces.append(event.raw)
        else:
            pieces.append(_continued_bytes(call_filter.take(event), continuation))
    return b"".join(pieces)


def _continued_bytes(
    events: Iterable[StreamEvent], continuation: Continuation[StreamEvent] | None
) -> bytes:
    continued = events if continuation is None else filter(None, map(continuation.take, events))
    return b"".join(event.raw for event in continued)


def _is_good(reply: Reply) -> bool:
    """Whether it is a successful answer without content coding."""
    return 200 <= reply.status < 300 and coding_of(reply.headers) == IDENTITY
