"""Measures JSON text before it is parsed.

A list takes two bytes of text and about a hundred of memory, and one call that parses millions of
them blocks all threads.  So values are counted first, piece by piece.  The result for text that is
not JSON is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

MAX_MESSAGES = 12_000
"""Messages of a request: many more than fit into any model's context."""

MAX_VALUES = 250_000
"""Values of a body (see ``has_more_values``): about twenty per message.  Each takes about a hundred
bytes once it is parsed."""

MAX_CHOICES = 128
"""OpenAI's maximum of ``n``."""

PIECE = 64 * 1024
"""Bytes that one call scans: the GIL is released in between."""

BLOCK = 512
"""Bytes that are classified as text or media together: no word is as long, few media are
shorter."""

_SEPARATORS = (b",", b"[", b"{")

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"


def has_more_values(limit: int, *raws: bytes) -> bool:
    """Whether the texts have more than ``limit`` values: commas and opening brackets are counted,
    except in strings."""
    if sum(map(len, raws)) <= limit:
        return False
    count = 0
    for outside in chain.from_iterable(map(_outside_strings, raws)):
        count += sum(map(outside.count, _SEPARATORS))
        if count > limit:
            return True
    return False


def has_more_text(limit: int, raw: bytes) -> bool:
    """Whether there are more than ``limit`` bytes beside media, which are blocks of base64."""
    if len(raw) <= limit:
        return False
    blocks = (raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK))
    count = 0
    for block in blocks:
        count += 0 if _is_media(block) else len(block)
        if count > limit:
            return True
    return False


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    in_string = 0
    for piece in _pieces(raw):
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield b"".join(parts[in_string::2])
        in_string ^= (len(parts) - 1) & 1


def _pieces(raw: bytes) -> Iterator[bytes]:
    """Pieces of about ``PIECE`` bytes, none of which ends between a backslash and what it
    escapes."""
    at = 0
    while at < len(raw):
        piece = raw[at : at + PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = raw[at : at + PIECE + 1]
        yield piece
        at += len(piece)


def _is_media(block: bytes) -> bool:
    rest = block.translate(None, _BASE64)
    if rest.strip(b"\\"):
        return False
    # Base64 in JSON may have escaped slashes and line ends; text may consist of escapes alone.
    escaped = sum(block.count(escape) for escape in (b"\\/", b"\\n", b"\\r")) if rest else 0
    return len(rest) - escaped <= 1  # the block may end within an escape
