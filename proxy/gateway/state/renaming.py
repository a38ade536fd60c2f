"""Replaces the ids in a response with the proxy's own; everything else keeps its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from proxy.chat import jsontext
from proxy.formats.responses.writing import event_with_fields, with_fields
from proxy.gateway.recording.tap import MAX_PLAIN
from proxy.gateway.tools.events import Bytes, EventSplitter, StreamEvent
from proxy.wire.headers import without_body_headers
from proxy.wire.replies import PeekedReply, WrappedReply, is_stream
from proxy.wire.upstream import Reply


class RenamedReply(WrappedReply):
    """A ``wire.Reply`` in which ``fields`` of the response (JSON by name) are replaced.

    A JSON answer of more than ``MAX_PLAIN`` bytes, which is not recorded either, is unchanged.
    """

    def __init__(self, reply: Reply, fields: Mapping[str, bytes]) -> None:
        super().__init__(reply)
        self._fields = fields
        self.headers = without_body_headers(reply.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        reply = PeekedReply(self._reply)
        pieces = self._events(reply) if await is_stream(reply) else self._body(reply)
        async for piece in pieces:
            yield piece

    async def _events(self, reply: Reply) -> AsyncIterator[bytes]:
        events = EventSplitter()
        async for data in reply.chunks():
            if renamed := self._rename_events(events.feed(data)):
                yield renamed
        if renamed := self._rename_events(events.close()):
            yield renamed

    def _rename_events(self, events: Iterable[Bytes | StreamEvent]) -> bytes:
        return b"".join(self._event(x) if isinstance(x, StreamEvent) else x.raw for x in events)

    def _event(self, event: StreamEvent) -> bytes:
        try:
            payload = event_with_fields(event.payload, self._fields)
        except jsontext.UNREADABLE:
            return event.raw
        return event.raw if payload is event.payload else event.replaced(payload).raw

    async def _body(self, reply: Reply) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        size = 0
        async for data in reply.chunks():
            size += len(data)
            if size > MAX_PLAIN:
                for part in parts:
                    yield part
                parts = []
                yield data
            else:
                parts.append(data)
        if size <= MAX_PLAIN:
            yield self._whole(b"".join(parts))

    def _whole(self, body: bytes) -> bytes:
        try:
            return with_fields(body, self._fields)
        except jsontext.UNREADABLE:
            return body
