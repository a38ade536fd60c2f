"""What every store does alike with the marks of what was erased.  Pure."""

from __future__ import annotations

import hashlib
import math

from proxy.memory.erasure import MARKED_SECONDS, Subject
from proxy.memory.model import SessionKey

UNMARKED = -math.inf
"""Where there is no mark: nothing began before it."""


def of_session(key: SessionKey) -> Subject:
    return Subject(key.tenant, session=key.session)


def of_users(tenant: str, *users: str | None) -> list[Subject]:
    """These people; None and "" are nobody."""
    return [Subject(tenant, user) for user in users if user]


def plain(subject: Subject) -> Subject:
    """A conversation is the same whosoever's it is."""
    return subject._replace(user="") if subject.session else subject


def digest_of(subject: Subject) -> bytes:
    """32 bytes that stand for a subject: the id of an erased person is not kept.

    Lengths stand before the parts, so that no two subjects run together to the same text.
    """
    parts = (part.encode() for part in plain(subject))
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).digest()


def expiry(until: float) -> float:
    """When a mark is forgotten."""
    return until + MARKED_SECONDS


def forbids(mark: float, since: float | None) -> bool:
    """Whether what began at ``since`` (None: not known, whenever) is not to be written."""
    return since is not None and since <= mark
