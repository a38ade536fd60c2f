"""Decompresses gzip and deflate incrementally, in all variants that servers send."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from proxy.wire.failures import UpstreamBroken

GZIP = (b"gzip", b"x-gzip", b"deflate")
"""The values of ``Content-Encoding`` that are supported here."""

AUTO_DETECT = 47
"""zlib's window bits to detect gzip or zlib."""

_MEMBER = b"\x1f"
"""The first byte of a gzip member."""

RAW = -15
"""Window bits of a raw deflate stream, which some servers send as deflate."""

PIECE = 64 * 1024
"""The largest piece of output, in bytes: the input may expand a thousandfold."""

MAX_EMPTY = 1024 * 1024
"""Consecutive input bytes without output: a file name without end, empty blocks or members."""

_SLICE = 16 * 1024
_DETECTABLE = 64
"""Input bytes within which a raw deflate stream, without zlib or gzip header, is detected."""


class Unpacker:
    """Decompresses gzip with any number of members (RFC 1952 2.2), zlib, or raw deflate, which is
    detected by the first bytes.  ``complete``: the input so far is complete.

    Raises zlib.error, and UpstreamBroken after ``MAX_EMPTY`` bytes without output.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(AUTO_DETECT)
        self._start = b""  # kept until the format is known
        self._format_known = self._padding = False
        self._empty = 0
        self.complete = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes; yields output in pieces of at most ``PIECE`` bytes."""
        for at in range(0, len(data), _SLICE):
            part = data[at : at + _SLICE]
            self._empty += len(part)
            for plain in self._decompressed(part):
                self._empty = 0
                yield plain
            if self._empty > MAX_EMPTY:
                raise UpstreamBroken("the reply's encoding goes on and holds nothing")

    def _decompressed(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more and not self._padding:
            if self._inflate.eof:
                if not data.startswith(_MEMBER):
                    self._padding = True  # trailing bytes, which all readers ignore
                    return
                self._inflate = zlib.decompressobj(AUTO_DETECT)
            plain = self._decompress(data)
            self.complete = self._inflate.eof
            data = self._inflate.unused_data or self._inflate.unconsumed_tail
            # After a full piece the decompressor may hold more output of the same input.
            more = bool(data) or (len(plain) == PIECE and not self.complete)
            if plain:
                yield plain

    def _decompress(self, data: bytes) -> bytes:
        if self._format_known:
            return self._inflate.decompress(data, PIECE)
        self._start += data
        try:
            plain = self._inflate.decompress(data, PIECE)
        except zlib.error:
            self._inflate, self._format_known = zlib.decompressobj(RAW), True
            return self._inflate.decompress(self._start, PIECE)
        self._format_known = bool(plain) or self._inflate.eof or len(self._start) > _DETECTABLE
        if self._format_known:
            self._start = b""
        return plain
