"""The packed formats of an index, the same in every store: rows and postings.  Pure."""

from __future__ import annotations

from bisect import bisect_left
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxy.memory.model import Card
from proxy.recall.index import POSTING_SIZE, ROW_SIZE, TERM_SIZE

Array = NDArray[Any]

ROW = np.dtype(
    [
        ("session", "<u4"),
        ("seq", "<u4"),
        ("check", "<u4"),
        ("time", "<u4"),
        ("tokens", "<u2"),
        ("length", "u1"),
        ("flags", "u1"),
    ]
)
"""A passage: session number, seq, check, Unix seconds, tokens (at most 65,535), coded length,
flags.

The check is part of the hash of the message's id and digest: after an edit, or if a deleted session
is begun again, other messages have the same seqs."""

POSTING = np.dtype([("passage", "<u4"), ("frequency", "u1"), ("length", "u1")])
"""A term in a passage: how often (at most 255), and the passage's coded length."""

assert ROW.itemsize == ROW_SIZE and POSTING.itemsize == POSTING_SIZE

SAID_BY_USER = 1
"""Flag of a row: the user's own words."""
STANDING = 2
"""Flag of a row: it holds a standing instruction or a preference."""
ENDS_WITH_QUESTION = 4
"""Flag of a row: it ends with a question, so what follows is an answer."""
FILLER = 8
"""Flag of a row: thanks, praise and the like; it is relevant only as an answer."""
STATEMENT_MASK = SAID_BY_USER | ENDS_WITH_QUESTION | FILLER
"""A mask: a statement of the user has only the first of these flags."""

NAMES_DAY = 16
"""Flag of a row: the user names a day relative to the message's ("yesterday"), which is known."""
FILLS_SLOT = 32
"""Flag of a row: the user says a slot's value, such as where they live."""
NOTE_FLAGS = NAMES_DAY | FILLS_SLOT
"""Flags of passages that get a note."""

STEPS = 16
"""Codes per doubling of the length."""

LENGTHS = np.round(2.0 ** (np.arange(256) / STEPS) - 1).astype(np.float32)
"""Length in terms by coded length, float32[256]; up to 62,000 terms, within 2 % where it
matters."""

_LENGTHS: list[float] = LENGTHS.tolist()


def coded_length(terms: int) -> int:
    """The code, 0 to 255, of a passage's length in terms."""
    return min(255, bisect_left(_LENGTHS, terms))


# Copying a hash object is faster than making a new one.
_TERM, _CHECK = blake2b(digest_size=TERM_SIZE), blake2b(digest_size=4)


def term_of(word: str) -> bytes:
    """The term that stands for a word."""
    hashed = _TERM.copy()
    hashed.update(word.encode("utf-8", "replace"))
    return hashed.digest()


def check_of(card: Card) -> int:
    """A row's check of a message: part of the hash of its id and digest."""
    return mark_check(f"{card.id} {card.digest}" if card.digest else card.id)


def mark_check(message_id: str) -> int:
    """A session mark's check of its message: part of the hash of the id."""
    hashed = _CHECK.copy()
    hashed.update(message_id.encode())
    return int.from_bytes(hashed.digest(), "little")


def scale_tokens(tokens: int, share: float) -> int:
    """The approximate tokens of a share of a message."""
    return tokens if share == 1 else 1 + int(tokens * share)


def read_rows(data: bytes) -> Array:
    """``ROW``[n rows]."""
    return np.frombuffer(data, ROW)


def read_postings(data: bytes) -> Array:
    """``POSTING``[n postings]."""
    return np.frombuffer(data, POSTING)


def newest_passage(data: bytes) -> int:
    """The number of the newest passage in postings, 0 where there are none."""
    return int.from_bytes(data[-POSTING_SIZE:][:4], "little")
