"""How much there is in a JSON text, told without making any of it.

A list takes two bytes of text and some hundred of memory, and a call that makes millions of them
stops everything else in the process.  So they are counted before they are made, piece by piece.
Text that is not JSON gets some answer.  Knows of chat only how much of it may come at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

MAX_MESSAGES = 12_000
"""Messages that come at once: many more than any model's context has room for."""

MAX_VALUES = 250_000
"""Values of a body (see ``has_over``): a dozen for each of so many messages.  Each takes some
hundred bytes once it is read."""

MAX_CHOICES = 128
"""The most choices that OpenAI lets a request ask for."""

PIECE = 64 * 1024
"""Bytes that are looked at by one call: other threads go on in between."""

BLOCK = 512
"""Bytes that are all text or all media: no language has a word as long, and few media are less."""

_SIGNS = (b",", b"[", b"{")

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_"


def has_over(most: int, *raws: bytes) -> bool:
    """Are there more values than ``most`` in all texts?  Commas and opening brackets are counted.

    What stands in strings does not count.
    """
    if sum(map(len, raws)) <= most:
        return False
    found = 0
    for outside in chain.from_iterable(map(_outside_strings, raws)):
        found += sum(map(outside.count, _SIGNS))
        if found > most:
            return True
    return False


def has_more_text(most: int, raw: bytes) -> bool:
    """Are there more bytes than ``most`` beside media?  A block that is all base64 is of those."""
    if len(raw) <= most:
        return False
    blocks = (raw[at : at + BLOCK] for at in range(0, len(raw), BLOCK))
    found = 0
    for block in blocks:
        found += 0 if _is_media(block) else len(block)
        if found > most:
            return True
    return False


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    within = 0
    for piece in _pieces(raw):
        parts = piece.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        yield b"".join(parts[within::2])
        within ^= (len(parts) - 1) & 1


def _pieces(raw: bytes) -> Iterator[bytes]:
    """No piece ends between a backslash and what it escapes."""
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
    # In JSON a slash and the end of a line may be escaped, as may be all letters of a language.
    escaped = sum(block.count(sign) for sign in (b"\\/", b"\\n", b"\\r")) if rest else 0
    return len(rest) - escaped <= 1  # the last may be parted from its sign
