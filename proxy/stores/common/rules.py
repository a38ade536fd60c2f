"""What all stores do in the same way with items, work and erasure marks.  Pure.

A claimed piece is due again when its lease expires, so ``due`` alone decides what can be claimed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from msgspec.structs import replace

from proxy.memory.archive import Page
from proxy.memory.erasure import MARK_SECONDS, Subject
from proxy.memory.items import Item, Namespace, Place
from proxy.memory.model import SessionKey, Work, WorkRequest

_LABEL_END = "\x02"
_KEY = "\x01"
"""Control characters, which no label and no key holds.  That of the key sorts first, so that a
namespace comes before those below it."""


def lower_bound(prefix: Namespace) -> bytes:
    """The bytes that the packed places below a prefix begin with, and no others."""
    return "".join(label + _LABEL_END for label in prefix).encode()


def upper_bound(beginning: bytes) -> bytes:
    """Bytes that sort behind everything with this beginning: UTF-8 has no byte 0xFF."""
    return beginning + b"\xff"


def pack(place: Place) -> bytes:
    """A place as bytes that sort like places."""
    return lower_bound(place.namespace) + (_KEY + place.key).encode()


def unpack(packed: bytes) -> Place:
    path, _, key = packed.decode().partition(_KEY)
    return Place(tuple(path.split(_LABEL_END)[:-1]), key)


def bound_after(namespace: Namespace) -> bytes:
    """Bytes that sort behind all keys of a namespace, and before the namespaces below it."""
    return lower_bound(namespace) + _LABEL_END.encode()


def lower_bound_after(prefix: Namespace, after: Namespace | None) -> bytes:
    """The lower bound of places below a prefix that sort behind all keys of a namespace."""
    return lower_bound(prefix) if after is None else max(lower_bound(prefix), bound_after(after))


def page_of(items: Sequence[Item], limit: int, *, more: bool = False) -> Page[Item]:
    """The first ``limit`` (at least 1) of items; ``more``: there may be some behind all of them."""
    page = tuple(items[:limit])
    return Page(page, page[-1].key if more or len(items) > limit else None)


def enqueued(piece: Work | None, key: SessionKey, due: WorkRequest) -> Work:
    """The piece of work after it was requested, again or for the first time (None)."""
    requests = piece.requests + 1 if piece else 1
    at = due.due_at if requests >= due.min_requests else due.due_if_fewer
    if piece is None:
        return Work(
            tenant=key.tenant, session=key.session, kind=due.kind, profile=due.profile, due=at
        )
    keeps_its_time = piece.lease or piece.attempts
    return replace(
        piece, profile=due.profile, requests=requests, due=piece.due if keeps_its_time else at
    )


def claimed(piece: Work | None, now: float, until: float, lease: str) -> Work | None:
    """The piece with a lease; None if it cannot be claimed."""
    if piece is None or piece.due > now:
        return None
    return replace(piece, due=until, lease=lease)


def has_lease(piece: Work | None, work: Work) -> bool:
    """Whether the piece still has the lease of ``work``."""
    return piece is not None and bool(work.lease) and piece.lease == work.lease


def finished(piece: Work, work: Work, again: float) -> Work | None:
    """The piece after ``work`` is done; None unless it was requested again meanwhile."""
    meanwhile = piece.requests - work.requests
    if meanwhile <= 0:
        return None
    return replace(piece, requests=meanwhile, attempts=0, due=again, lease="")


def postponed(piece: Work, due: float, *, failed: bool) -> Work:
    """The piece without a lease, due later; ``failed``: with one more attempt."""
    return replace(piece, attempts=piece.attempts + 1 if failed else 0, due=due, lease="")


NO_MARK = -math.inf
"""The time of a mark where there is none: nothing began before it."""


def session_subject(key: SessionKey) -> Subject:
    return Subject(key.tenant, session=key.session)


def user_subjects(tenant: str, *users: str | None) -> list[Subject]:
    """The subjects of these users, without None and ""."""
    return [Subject(tenant, user) for user in users if user]


def mark_subject(subject: Subject) -> Subject:
    """The subject as marks have it: a conversation without its user."""
    return subject._replace(user="") if subject.session else subject


def digest_of(subject: Subject) -> bytes:
    """A hash of 32 bytes for a subject: the id of an erased person is not kept.

    Lengths stand before the parts, so that no two subjects run together to the same text.
    """
    parts = (part.encode() for part in mark_subject(subject))
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()


def expiry(until: float) -> float:
    """When a mark expires."""
    return until + MARK_SECONDS


def is_refused(mark: float, since: float | None) -> bool:
    """Whether a write that began at ``since`` (None: unknown, always allowed) is refused."""
    return since is not None and since <= mark
