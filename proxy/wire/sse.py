"""Scans server-sent events for lines that a proxy must hold back, and collects the payloads.

Sans I/O: chunks in, marks out; the caller relays the bytes.  Knows the event stream format (WHATWG
HTML 9.2); two callables decide what payloads mean.

    line end      LF, CRLF or CR; a CR at the end of a chunk ends its line, and an LF that follows
                  in the next chunk belongs to it
    data          "data", then ":", then one optional space; several lines join with LF
    everything    "event", "id", "retry", unknown fields and comments are relayed and ignored
    event's end   an empty line; here also the end of the stream, as clients of models expect
    start         one byte order mark may stand before the first line
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MAX_EVENT_BYTES = 16 * 1024 * 1024
MAX_EVENT_LINES = 256
"""Bounds the classifications of an event: each data line makes a new payload to classify."""

MAX_CLASSIFIED = 1024 * 1024
"""Bounds their bytes.  After that the payload is classified only at the event's end, before which
no client can act on it."""

LINE_END = re.compile(rb"\r\n|\n|\r")
_DATA = b"data: "
BOM = b"\xef\xbb\xbf"
_IGNORED_LINE = b":"  # replaces a line that is too long to be kept


class HoldPoint(NamedTuple):
    """Hold the stream back from ``offset`` in this chunk on.

    It is the start of the line that makes its event one of this ``kind``; 0 if the line began in an
    earlier chunk, which may be relayed since no client can act on a line before its end.
    """

    offset: int
    kind: str


class Gate:
    """Marks lines to hold back, and collects all payloads for the tap.

    At the end of each data line, or of the event, ``may_end`` is given the event's data so far and
    returns False if it certainly needs no mark; else ``end_signal`` returns its kind or None.  An
    event is marked once for each kind.  An event over ``max_event_bytes`` or ``MAX_EVENT_LINES``
    gets no mark and no payload, and sets ``overflowed``.
    """

    def __init__(
        self,
        may_end: Callable[[bytes], bool],
        end_signal: Callable[[bytes], str | None],
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self._may_end = may_end
        self._end_signal = end_signal
        self._max_event_bytes = max_event_bytes
        self.overflowed = False
        # The stream so far
        self._first_line_read = False  # the first line, which may begin with a BOM, has been read
        self._after_cr = False
        self._line = bytearray()
        # The event so far
        self._data: bytes | None = None
        self._unjoined: list[bytes] = []  # lines that are not joined to it yet
        self._lines = self._size = self._classified = 0
        self._unclassified = False  # its last lines have not been classified
        self._kinds: tuple[str, ...] = ()
        self._skipping = False
        # For the tap
        self._payloads: list[bytes] = []

    def feed(self, chunk: bytes) -> list[HoldPoint]:
        """Take the next bytes of the stream; returns the marks in them, in order."""
        if self._is_one_event(chunk):
            marks: list[HoldPoint] = []
            self._end_data(chunk[6:-2], 0, marks)
            self._end_event(0, marks)
            return marks
        return self._feed(chunk) if chunk else []

    def _is_one_event(self, chunk: bytes) -> bool:
        """Whether a chunk is exactly ``data: X LF LF``, as nearly every one is.

        It may also be the end of an event that began before.
        """
        return (
            chunk[:6] == _DATA
            and chunk[-2:] == b"\n\n"
            and chunk.count(b"\n") == 2
            and not self._line
            and self._first_line_read
            and b"\r" not in chunk
        )

    def _feed(self, chunk: bytes) -> list[HoldPoint]:
        start = 1 if self._after_cr and chunk[0] == 10 else 0
        self._after_cr = chunk[-1] == 13
        marks: list[HoldPoint] = []
        for end in LINE_END.finditer(chunk, start):
            line = chunk[start : end.start()]
            if self._line:
                self._extend(line)
                line = bytes(self._line)
                self._line.clear()
                self._end_line(line, 0, marks)
            else:
                self._end_line(line, start, marks)
            start = end.end()
        if start < len(chunk):
            self._extend(chunk[start:])
        return marks

    def take(self) -> list[bytes]:
        """The payloads of the events that ended since the last call."""
        payloads = self._payloads
        if payloads:
            self._payloads = []
        return payloads

    @property
    def unfinished(self) -> bytes | None:
        """The payload so far of the event that has not ended, None between events."""
        if self._unjoined and self._data is not None:
            self._data = b"\n".join([self._data, *self._unjoined])
            self._unjoined.clear()
        return self._data

    def close(self) -> list[HoldPoint]:
        """The stream has ended: an unfinished line and an unfinished event count as finished."""
        marks: list[HoldPoint] = []
        if self._line:
            line = bytes(self._line)
            self._line.clear()
            self._end_line(line, 0, marks)
        self._end_event(0, marks)
        return marks

    def _extend(self, part: bytes) -> None:
        """Buffer an unfinished line, unless it is too long."""
        if self._skipping:
            self._line[:] = _IGNORED_LINE
            return
        self._line += part
        if self._skip_if_too_big(len(self._line) - len(_DATA)):
            self._line[:] = _IGNORED_LINE

    def _end_line(self, line: bytes, offset: int, marks: list[HoldPoint]) -> None:
        if not self._first_line_read:
            self._first_line_read = True
            line = line.removeprefix(BOM)
        if not line:
            self._end_event(offset, marks)
        elif self._skip_if_too_big(len(line) - len(_DATA)):
            return
        elif line.startswith(_DATA):
            self._end_data(line[6:], offset, marks)
        elif line.startswith(b"data:") or line == b"data":
            self._end_data(line[5:], offset, marks)

    def _end_data(self, value: bytes, offset: int, marks: list[HoldPoint]) -> None:
        if self._skipping:
            return
        self._lines += 1
        first = self._data is None
        self._size += len(value) + (not first)
        if self._skip_if_too_big(self._size):
            return
        if first:
            self._data = value
        else:
            self._unjoined.append(value)
        self._classified += self._size
        self._unclassified = not first and self._classified > MAX_CLASSIFIED
        if not self._unclassified:
            self._classify(offset, marks)

    def _classify(self, offset: int, marks: list[HoldPoint]) -> None:
        value = self.unfinished
        if value is not None and self._may_end(value):
            kind = self._end_signal(value)
            if kind is not None and kind not in self._kinds:
                self._kinds += (kind,)
                marks.append(HoldPoint(offset, kind))

    def _end_event(self, offset: int, marks: list[HoldPoint]) -> None:
        if self._unclassified:
            self._classify(offset, marks)
        data = self.unfinished
        if data is not None:
            self._payloads.append(data)
            self._data = None
        self._lines = self._size = self._classified = 0
        self._kinds = ()
        self._skipping = self._unclassified = False

    def _skip_if_too_big(self, size: int) -> bool:
        if size <= self._max_event_bytes and self._lines <= MAX_EVENT_LINES:
            return False
        self.overflowed = self._skipping = True
        self._data, self._unclassified = None, False
        self._unjoined.clear()
        return True
