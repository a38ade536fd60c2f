"""Requests that the proxy makes itself: their headers, and the meaning of an answer's head."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from proxy.errors import RawHeaders
from proxy.wire.headers import get

MAX_WAIT = 86_400.0
"""The longest ``Retry-After`` that is obeyed, in seconds."""

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed later."""


def json_headers(credential: RawHeaders) -> RawHeaders:
    """The headers of a request with a JSON body; ``credential`` are those that carry the key."""
    return [
        (b"Content-Type", b"application/json"),
        (b"Accept", b"application/json"),
        # Without it the answer may be compressed.
        (b"Accept-Encoding", b"identity"),
        (b"User-Agent", b"memory-proxy"),
        *credential,
    ]


def bearer(key: str | None) -> RawHeaders:
    """The header with this key; no header without a key."""
    return [(b"Authorization", f"Bearer {key}".encode())] if key else []


def is_permanent_refusal(status: int) -> bool:
    """Whether the same request would be refused again."""
    return 400 <= status < 500 and status not in _TRANSIENT


def retry_after(headers: RawHeaders, now: float) -> float | None:
    """Seconds to wait as ``Retry-After`` has it (RFC 9110 10.2.3), at most ``MAX_WAIT``.

    ``now`` in Unix seconds.  None if the field is missing or invalid.
    """
    value = get(headers, b"retry-after")
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_WAIT)
