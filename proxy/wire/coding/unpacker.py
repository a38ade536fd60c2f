"""Decompressing gzip and deflate piece by piece, whatever the sender makes of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from proxy.wire.failures import UpstreamBroken

GZIP = (b"gzip", b"x-gzip", b"deflate")
"""What is unpacked here, as ``Content-Encoding`` has it."""

AUTO_DETECT = 47
"""zlib's window bits for "gzip or zlib, whichever it is"."""

_MEMBER = b"\x1f"
"""The first byte of a gzip member."""

RAW = -15
"""The same for a deflate stream with nothing around it, which some servers call deflate."""

PIECE = 64 * 1024
"""Bytes that are decompressed at once: a megabyte may hold a thousand."""

MAX_BARREN = 1024 * 1024
"""Encoded bytes in a row that may hold nothing: a name without end, empty blocks, empty members."""

_SLICE = 16 * 1024
_TELLING = 64
"""Bytes by which a bare deflate stream has shown itself, which has no header of zlib or gzip."""


class Unpacker:
    """gzip with any number of members (RFC 1952 2.2), zlib, or bare deflate, told from the start.

    Keeps nothing of what it is fed but its first bytes.  Raises zlib.error, and UpstreamBroken
    where too much comes that holds nothing.
    """

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(AUTO_DETECT)
        self._start = b""  # until it is known to be no bare deflate
        self._known = self._padding = False
        self._barren = 0
        self.whole = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes hold, in pieces of at most ``PIECE`` bytes."""
        for at in range(0, len(data), _SLICE):
            part = data[at : at + _SLICE]
            self._barren += len(part)
            for plain in self._unpacked(part):
                self._barren = 0
                yield plain
            if self._barren > MAX_BARREN:
                raise UpstreamBroken("the reply's encoding goes on and holds nothing")

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        more = True
        while more and not self._padding:
            if self._inflate.eof:
                if not data.startswith(_MEMBER):
                    self._padding = True  # which no reader minds
                    return
                self._inflate = zlib.decompressobj(AUTO_DETECT)
            plain = self._decompress(data)
            self.whole = self._inflate.eof
            data = self._inflate.unused_data or self._inflate.unconsumed_tail
            # A full piece may have left some of what is in the decompressor already.
            more = bool(data) or (len(plain) == PIECE and not self.whole)
            if plain:
                yield plain

    def _decompress(self, data: bytes) -> bytes:
        if self._known:
            return self._inflate.decompress(data, PIECE)
        self._start += data
        try:
            plain = self._inflate.decompress(data, PIECE)
        except zlib.error:
            self._inflate, self._known = zlib.decompressobj(RAW), True
            return self._inflate.decompress(self._start, PIECE)
        self._known = bool(plain) or self._inflate.eof or len(self._start) > _TELLING
        if self._known:
            self._start = b""
        return plain
