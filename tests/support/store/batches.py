"""Batches of an index as tests write them: a passage is the terms it holds."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from proxy.recall.index import TERM_SIZE, IndexBatch, IndexMark


def term(name: str | int) -> bytes:
    """Eight bytes; some of them are what keys and queries are made of."""
    return f"{{{name}}}:*\0".encode().ljust(TERM_SIZE, b"\xff")[-TERM_SIZE:]


def row(session: int, seq: int) -> bytes:
    return pack("<IIIIHBB", session, seq, 1, 2, 3, 4, 5)


def posting(number: int) -> bytes:
    return pack("<IBB", number, 1, 9)


def batch(
    revision: int,
    passages: Sequence[Sequence[str | int]],
    *,
    first: int = 0,
    session: str = "session",
    number: int = 7,
    marked: bool = True,
    ttl: int = 0,
    began: float | None = None,
) -> IndexBatch:
    """Passages of a session, seqs as their numbers; ``number`` and ``began`` are the session's."""
    postings: dict[bytes, bytes] = {}
    for at, words in enumerate(passages, first):
        for word in words:
            postings[term(word)] = postings.get(term(word), b"") + posting(at)
    end = first + len(passages)
    return IndexBatch(
        revision=revision,
        state=b"state \0 %d" % revision,
        session=session,
        mark=IndexMark(number, end, 0xFFFFFFFF) if marked else None,
        first=first,
        rows=b"".join(row(number, seq) for seq in range(first, end)),
        postings=postings,
        ttl=ttl,
        session_created_at=began,
    )
