"""What a client is told when the upstream fails."""

from __future__ import annotations

import errno

import pytest

from proxy.wire.failures import (
    CLIENT_ERRORS,
    UpstreamBroken,
    UpstreamError,
    UpstreamSaturated,
    UpstreamTimeout,
    UpstreamUnreachable,
    as_saturated,
    error_for,
)


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (UpstreamUnreachable(), 502, "upstream_unreachable"),
        (UpstreamBroken(), 502, "upstream_unreachable"),
        (UpstreamTimeout(), 504, "upstream_timeout"),
        (UpstreamSaturated(), 503, "overloaded"),
        (UpstreamError(), 502, "upstream_unreachable"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, UpstreamError) else None,
)
def test_every_failure_has_its_answer(failure: UpstreamError, status: int, code: str) -> None:
    answer = error_for(failure)
    assert (answer.status, answer.code) == (status, code)
    assert type(failure) in CLIENT_ERRORS
    assert (b"retry-after" in dict(answer.raw_headers)) == (status == 503)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL])
def test_lack_of_sockets_is_seen_through_wrapping(number: int) -> None:
    outer = RuntimeError()
    outer.__context__ = OSError(number, "x")
    full = as_saturated(outer)
    assert full is not None
    assert str(full).startswith(f"no socket to ask with ({errno.errorcode[number]}: ")
    assert as_saturated(OSError(errno.ECONNREFUSED, "x")) is None
