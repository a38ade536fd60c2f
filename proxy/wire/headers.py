"""Header fields as raw lists: which ones a proxy forwards.

Knows HTTP only: no session, no memory, no configuration.  Order and duplicates are kept, because
``Set-Cookie`` cannot be folded and order may carry meaning (RFC 9110 5.3).  Strip first and add
our own fields afterwards: a ``Connection: x-ours`` of the other side must not remove them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from proxy.errors import RawHeaders, invalid_header

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",  # never standard, still sent by old clients
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Fields that are about one connection (RFC 9110 7.6.1)."""

DIGESTS = frozenset({b"content-md5", b"digest", b"content-digest", b"repr-digest"})
_BODY_FIELDS = DIGESTS | {b"content-length", b"etag"}

# Framing and authority are generated for the next hop.  ``Expect`` is dropped because our server
# has sent its 100 before the upstream is called.
_REQUEST = HOP_BY_HOP | {b"host", b"content-length", b"expect"}
# An alternative service is one of the upstream's, not of the proxy (RFC 7838).
_RESPONSE = HOP_BY_HOP | {b"alt-svc"}

_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def without_body_headers(headers: RawHeaders) -> RawHeaders:
    """An answer's headers without those that depend on the bytes of its body."""
    return [field for field in headers if field[0].lower() not in _BODY_FIELDS]


def without_controls(headers: RawHeaders) -> RawHeaders:
    """Headers with spaces for what no header may have, and ours cannot be sent with (RFC 9110
    5.5)."""
    return [(name, _CONTROLS.sub(b" ", value)) for name, value in headers]


def end_to_end(
    headers: Sequence[tuple[bytes, bytes]],
    drop: frozenset[bytes] = frozenset(),
    *,
    response: bool = False,
) -> RawHeaders:
    """The fields to forward, unchanged and in order.

    Leaves out hop-by-hop fields, those that a ``Connection`` field names, and ``drop`` (lower-case
    names).  Of a request also ``Host``, ``Content-Length`` and ``Expect``; of a ``response`` also
    ``Alt-Svc``, and ``Content-Length`` where ``Transfer-Encoding`` overrules it (RFC 9112 6.3).
    """
    dropped = _dropped_names(drop, response)
    forwarded = [field for field in headers if field[0].lower() not in dropped]
    options = _connection_options(headers, response)
    if options:
        return [field for field in forwarded if field[0].lower() not in options]
    return forwarded


@lru_cache(maxsize=64)
def _dropped_names(drop: frozenset[bytes], response: bool) -> frozenset[bytes]:
    return drop | (_RESPONSE if response else _REQUEST)


def _connection_options(headers: Sequence[tuple[bytes, bytes]], response: bool) -> set[bytes]:
    """Names of further fields that this message requires to drop."""
    options: set[bytes] = set()
    for name, value in headers:
        size = len(name)
        if size == 10 and name.lower() == b"connection":
            options.update(option.strip().lower() for option in value.split(b","))
        elif response and size == 17 and name.lower() == b"transfer-encoding":
            options.add(b"content-length")
    return options


def get(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first value of ``name`` (lower case), or None."""
    for key, value in headers:
        if key == name or (len(key) == len(name) and key.lower() == name):
            return value
    return None


def get_all(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """Every value of ``name`` (lower case), in order."""
    return [value for key, value in headers if key.lower() == name]


def content_length(headers: Sequence[tuple[bytes, bytes]]) -> int | None:
    """The declared size of the body in bytes, or None if there is none or no plain number, or if
    ``Transfer-Encoding`` overrules it (RFC 9112 6.3)."""
    value = get(headers, b"content-length")
    # ``isdigit`` of bytes is ASCII only: no sign, no space, no underscore (RFC 9110 8.6).
    if value is None or not value.isdigit() or len(value) > 18:
        return None
    return int(value) if get(headers, b"transfer-encoding") is None else None


def check_framing(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse ambiguous framing, which allows request smuggling (RFC 9112 6.1, 11.2).

    Raises ProxyError 400 ``invalid_header`` for ``Content-Length`` beside ``Transfer-Encoding``, a
    ``Transfer-Encoding`` other than ``chunked``, and lengths that disagree or are no numbers.
    """
    lengths = get_all(headers, b"content-length")
    codings = get_all(headers, b"transfer-encoding")
    if not codings and len(lengths) < 2 and (not lengths or lengths[0].isdigit()):
        return
    if codings and lengths:
        raise invalid_header(
            "Send either Content-Length or Transfer-Encoding, not both.", "Transfer-Encoding"
        )
    if lengths:
        raise invalid_header("Send one Content-Length, a plain number.", "Content-Length")
    if [coding.strip().lower() for coding in codings] != [b"chunked"]:
        raise invalid_header("The only Transfer-Encoding taken is chunked.", "Transfer-Encoding")
