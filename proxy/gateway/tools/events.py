"""Splits a stream into its events, which can be relayed, dropped, or given another payload.

Sans I/O.  Unchanged events keep their bytes.  An event is held until it has ended: before that no
client can act on it.  The format: see ``proxy.wire.sse``.
"""

from __future__ import annotations

import msgspec

from proxy.wire.sse import BOM, LINE_END, MAX_EVENT_BYTES


class Bytes(msgspec.Struct, frozen=True):
    """Bytes between events: comments, and what cannot be read."""

    raw: bytes


class StreamEvent(msgspec.Struct, frozen=True):
    """An event's bytes and the data in it."""

    raw: bytes
    payload: bytes

    def replaced(self, payload: bytes) -> StreamEvent:
        old_lines = self.raw.removeprefix(BOM).splitlines()
        lines = [line for line in old_lines if line and line.partition(b":")[0] != b"data"]
        lines.append(b"data: " + payload.replace(b"\n", b" ").replace(b"\r", b" "))
        return StreamEvent(b"\n".join(lines) + b"\n\n", payload)


class EventSplitter:
    """The splitter.  An event of more than ``max_event_bytes`` is returned as ``Bytes``."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._started = self._after_cr = False
        self._raw, self._line = bytearray(), bytearray()
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Bytes | StreamEvent]:
        """Take the next bytes of the stream; returns what they complete."""
        if self._is_one_event(chunk):
            return [StreamEvent(chunk, chunk[6:-2])]
        events: list[Bytes | StreamEvent] = []
        start = self._end_of_crlf(chunk, events)
        for end in LINE_END.finditer(chunk, start):
            self._line += chunk[start : end.start()]
            self._raw += chunk[start : end.end()]
            self._end_line(events)
            start = end.end()
        self._line += chunk[start:]
        self._raw += chunk[start:]
        if len(self._raw) > self._max_event_bytes:
            events.append(self._take_rest())
        return events

    def close(self) -> list[Bytes | StreamEvent]:
        """The stream has ended: an unfinished event counts as finished."""
        events: list[Bytes | StreamEvent] = []
        if self._line:
            self._end_line(events)
        return [*events, self._take_rest()] if self._raw else events

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether a chunk is exactly ``data: X LF LF``, as nearly every one is."""
        return (
            chunk[:6] == b"data: "
            and chunk[-2:] == b"\n\n"
            and chunk.count(b"\n") == 2
            and not (self._raw or self._after_cr)
            and b"\r" not in chunk
        )

    def _end_of_crlf(self, chunk: bytes, events: list[Bytes | StreamEvent]) -> int:
        """The index at which the next line begins: a first LF may end the CR of the last chunk."""
        begins = chunk[:1] == b"\n" and self._after_cr
        self._after_cr = chunk[-1:] == b"\r" or (self._after_cr and not chunk)
        if not begins:
            return 0
        if self._raw:
            self._raw += b"\n"
        else:
            events.append(Bytes(b"\n"))
        return 1

    def _end_line(self, events: list[Bytes | StreamEvent]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if not self._started:
            self._started, line = True, line.removeprefix(BOM)
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line == b"data":
            self._data.append(b"")
        elif not line or (line.startswith(b":") and len(self._raw) <= len(line) + 2):
            events.append(self._take_rest())

    def _take_rest(self) -> Bytes | StreamEvent:
        """All bytes since the last event, as an event if they have data."""
        raw, data = bytes(self._raw), self._data
        self._raw.clear()
        self._line.clear()
        self._data = []
        if not data or len(raw) > self._max_event_bytes:
            return Bytes(raw)
        return StreamEvent(raw, b"\n".join(data))
