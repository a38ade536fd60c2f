"""Signed ids: that the session and the user of a request were named by the client's own server.

``X-Memory-Signature: t=<unix>,v1=<hex>`` holds the HMAC-SHA256 (RFC 2104) over the time, the
session and the user, line by line, under the client's signing secret; "" for an id that is not
sent.  It counts for five minutes, either way, since clocks differ.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from proxy.errors import invalid_signature

HEADER = b"x-memory-signature"
MAX_AGE_SECONDS = 300

_SIGNATURE = re.compile(rb"\s*t=(?P<time>[0-9]{1,12})\s*,\s*v1=(?P<hex>[0-9a-fA-F]{64})\s*")


def sign(secret: bytes, time: int, session: str, user: str) -> str:
    """The hexadecimal signature of these ids at this Unix time."""
    said = f"{time}\n{session}\n{user}".encode()
    return hmac.new(secret, said, hashlib.sha256).hexdigest()


def check(header: bytes | None, secret: bytes, session: str, user: str, now: float) -> None:
    """Raise ProxyError 403 unless the header signs these ids, at most 300 s ago."""
    found = _SIGNATURE.fullmatch(header or b"")
    if found is None or abs(now - int(found["time"])) > MAX_AGE_SECONDS:
        raise invalid_signature()
    wanted = sign(secret, int(found["time"]), session, user)
    if not hmac.compare_digest(found["hex"].decode().lower(), wanted):
        raise invalid_signature()
