"""Keys and arguments of the scripts of an index, and what their replies mean.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from proxy.recall.index import NO_POSTINGS, POSTING_SIZE, Batch, Look, Mark, Owner, Postings, Rows

PARTS = (b"meta", b"rows", b"marks", b"vocabulary", b"models")
"""The keys of an index, besides those of terms and vectors; every script gets them first."""


def _prefix(owner: Owner) -> bytes:
    """A user and a session may be called the same: then only what follows the tag differs.

    Short, because every term of every owner has a key.
    """
    who, kind = (owner.user, "ui") if owner.user else (owner.session, "si")
    return f"mp:{{{quote(owner.tenant, safe='')}:{quote(who, safe='')}}}:{kind}:".encode()


def index_keys(owner: Owner) -> list[bytes]:
    prefix = _prefix(owner)
    return [prefix + part for part in PARTS]


def term_keys(owner: Owner, terms: Sequence[bytes]) -> list[bytes]:
    prefix = _prefix(owner) + b"t:"
    return [prefix + term for term in terms]


def vectors_key(owner: Owner, model: str, size: int) -> bytes:
    return _prefix(owner) + f"v:{size}:{model}".encode()


def write_arguments(batch: Batch) -> list[Any]:
    mark = "" if batch.mark is None else " ".join(map(str, batch.mark))
    head = [batch.revision, batch.state, batch.first, batch.rows, batch.ttl, batch.session, mark]
    return [*head, *batch.postings.values()]


def read_look(reply: Sequence[Any], terms: int) -> Look:
    """A look for so many terms from the reply to its script."""
    if not reply:
        return Look(postings=(NO_POSTINGS,) * terms)
    revision, state, mark, *found = reply
    postings = tuple(
        Postings(size // POSTING_SIZE, newest)
        for size, newest in zip(found[::2], found[1::2], strict=True)
    )
    return Look(int(revision), state, postings, Mark(*map(int, mark.split())) if mark else None)


def read_rows(reply: Sequence[Any]) -> Rows:
    data, names = reply
    sessions = zip(names[::2], names[1::2], strict=True)
    return Rows(data, {int(number): name.decode() for number, name in sessions})
