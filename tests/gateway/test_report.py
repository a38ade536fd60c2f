"""What the answer's headers say, to the letter, and what the record says of the same."""

from __future__ import annotations

import pytest

from proxy.gateway.report import MemoryReport
from proxy.memory.model import Injection, Status


def test_before_anything_has_happened_memory_was_off() -> None:
    assert MemoryReport("s").headers() == [
        (b"x-memory-status", b"off"),
        (b"x-memory-session-id", b"s"),
        (b"x-memory-messages", b"0"),
        (b"x-memory-tokens", b"0"),
        (b"x-memory-recalled", b"0"),
        (b"server-timing", b"memory;dur=0.00"),
    ]


@pytest.mark.parametrize("status", ["applied", "empty", "off", "degraded"])
def test_everything_that_is_known_is_said(status: Status) -> None:
    report = MemoryReport("s", "ex_1", status, "spooled", 3, 120, 5, 900, 0.0123456)
    assert dict(report.headers()) == {
        b"x-memory-status": status.encode(),
        b"x-memory-session-id": b"s",
        b"x-memory-messages": b"3",
        b"x-memory-tokens": b"120",
        b"x-memory-recalled": b"0",
        b"x-memory-exchange-id": b"ex_1",
        b"x-memory-reason": b"spooled",
        b"server-timing": b"memory;dur=12.35",
    }
    assert report.injection() == Injection(
        status=status,
        reason="spooled",
        messages=3,
        tokens=120,
        evicted_messages=5,
        evicted_tokens=900,
        duration_ms=12.346,
    )


def test_any_session_id_fits_into_a_header() -> None:
    session = "".join(map(chr, range(0x21, 0x7F)))
    assert dict(MemoryReport(session).headers())[b"x-memory-session-id"] == session.encode()
