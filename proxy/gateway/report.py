"""What memory did for a request: response headers, and the record of the exchange."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from proxy.chat.request import UnreadReason
from proxy.errors import RawHeaders
from proxy.memory.model import NO_TRACE, NOTHING_RECALLED, Injection, Status

Reason = Literal[
    "not_chat",
    "cross_site",
    "encoded_body",
    UnreadReason,
    "side_request",
    "stale_retry",
    "spooled",
    "store_timeout",
    "store_error",
    "recall_timeout",
    "recall_error",
    "context_trimmed",
    "tool_name_taken",
    "tools_refused",
    "marks_refused",
    "media_refused",
    "answer_too_large",
    "unknown_header",
]
"""Why memory did less than it was asked for."""


class RecordDetails(NamedTuple):
    """The parts of a recorded Injection that the headers do not have."""

    recalled: msgspec.Raw = NOTHING_RECALLED
    trace: msgspec.Raw = NO_TRACE


NO_DETAILS = RecordDetails()


class MemoryReport(msgspec.Struct, frozen=True, gc=False):
    """Sent with the answer's headers, and recorded."""

    session: str
    exchange: str | None = None
    status: Status = "off"
    reason: Reason | None = None
    messages: int = 0
    tokens: int = 0
    evicted_messages: int = 0
    evicted_tokens: int = 0
    duration: float = 0.0
    """Seconds spent before the upstream was called."""
    recalled: int = 0
    recall_duration: float | None = None
    """Seconds of it that recall took; None if there was no recall."""
    evicted_reason: str | None = None
    """Why the newest of the evicted messages did not fit: see ``compose``."""

    def headers(self) -> RawHeaders:
        """``X-Memory-*`` and ``Server-Timing``."""
        fields = [
            (b"x-memory-status", self.status.encode()),
            (b"x-memory-session-id", self.session.encode()),
            (b"x-memory-messages", b"%d" % self.messages),
            (b"x-memory-tokens", b"%d" % self.tokens),
            (b"x-memory-recalled", b"%d" % self.recalled),
            (b"server-timing", self._timing()),
        ]
        if self.exchange is not None:
            fields.append((b"x-memory-exchange-id", self.exchange.encode()))
        if self.reason is not None:
            fields.append((b"x-memory-reason", self.reason.encode()))
        return fields

    def _timing(self) -> bytes:
        timing = b"memory;dur=%.2f" % (self.duration * 1000)
        if self.recall_duration is not None:
            timing += b", recall;dur=%.2f" % (self.recall_duration * 1000)
        return timing

    def injection(self, details: RecordDetails = NO_DETAILS) -> Injection:
        return Injection(
            status=self.status,
            reason=self.reason,
            messages=self.messages,
            tokens=self.tokens,
            evicted_messages=self.evicted_messages,
            evicted_tokens=self.evicted_tokens,
            evicted_reason=self.evicted_reason,
            duration_ms=round(self.duration * 1000, 3),
            recalled=details.recalled,
            trace=details.trace,
        )
