"""Decompresses request bodies.  Pure; the time is linear in the size of the result."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator

import zstandard

from proxy.errors import RawHeaders, request_too_large
from proxy.wire.coding.unpacker import GZIP, PIECE, Unpacker
from proxy.wire.failures import UpstreamBroken
from proxy.wire.headers import get_all

CODING = b"content-encoding"

IDENTITY = b"identity"
ZSTD = b"zstd"

_NO_CODINGS = frozenset({b"", IDENTITY, b"none", b"utf-8", b"utf8"})
"""Values that name no coding, and that clients read past: "none" keeps frameworks from compressing
an event stream, and a character set stands there by mistake."""

MAX_WINDOW = 8 * 1024 * 1024
"""The largest zstd window, in bytes (RFC 8878 3.1.1.1.2, RFC 9659)."""


def coding_of(headers: RawHeaders) -> bytes:
    """The content coding, ``IDENTITY`` for none; several codings count as one unknown one."""
    values = b",".join(get_all(headers, CODING)).lower().split(b",")
    codings = [coding for each in values if (coding := each.strip()) not in _NO_CODINGS]
    return b", ".join(codings) or IDENTITY


def decoded(body: bytes, coding: bytes, limit: int) -> bytes | None:
    """The plain body; None if the coding is unknown or the body is not valid in it.

    Stops and raises ProxyError 413 if the result is larger than ``limit`` bytes.
    """
    if coding == IDENTITY:
        return body
    if coding != ZSTD and coding not in GZIP:
        return None
    parts, size = [], 0
    try:
        for part in _unzstd(body) if coding == ZSTD else _inflated(body):
            size += len(part)
            if size > limit:
                raise request_too_large(limit)
            parts.append(part)
    except (zlib.error, zstandard.ZstdError, UpstreamBroken):
        return None
    return b"".join(parts) if parts else None


def _inflated(body: bytes) -> Iterator[bytes]:
    unpacker = Unpacker()
    yield from unpacker.feed(body)
    if not unpacker.complete:
        raise zlib.error("it ends within its encoding")


def _unzstd(body: bytes) -> Iterator[bytes]:
    frames = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    with frames.stream_reader(io.BytesIO(body), read_across_frames=True) as reader:
        while part := reader.read(PIECE):
            yield part
