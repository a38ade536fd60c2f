"""Asking an API for ourselves: what every such request says, and what its answer's head means."""

from __future__ import annotations

import math
from email.utils import parsedate_to_datetime

from proxy.errors import RawHeaders
from proxy.wire.headers import get

LONGEST_WAIT = 86_400.0
"""Seconds that an answer can make us wait."""

_LATER = frozenset({408, 409, 425, 429})
"""Statuses below 500 that are about the moment and not about the request."""


def json_headers(credential: RawHeaders) -> RawHeaders:
    """The headers of a request with a JSON body; ``credential`` are those that carry the key."""
    return [
        (b"Content-Type", b"application/json"),
        (b"Accept", b"application/json"),
        # What is not asked for in plain may come compressed.
        (b"Accept-Encoding", b"identity"),
        (b"User-Agent", b"memory-proxy"),
        *credential,
    ]


def bearer(key: str | None) -> RawHeaders:
    """The header that carries a key; none for none."""
    return [(b"Authorization", f"Bearer {key}".encode())] if key else []


def refuses(status: int) -> bool:
    """Would the same request be refused again?"""
    return 400 <= status < 500 and status not in _LATER


def retry_after(headers: RawHeaders, now: float) -> float | None:
    """Seconds to wait as ``Retry-After`` has it (RFC 9110 10.2.3), at most ``LONGEST_WAIT``.

    ``now`` in Unix seconds.  None where the answer does not say, or nothing that can be read.
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
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)
