"""What becomes of a piece of work, for the stores that say it in Python.  Pure.

A piece that is held is due when its lease runs out: ``due`` alone tells what can be claimed.
"""

from __future__ import annotations

from msgspec.structs import replace

from proxy.memory.model import SessionKey
from proxy.memory.work import Due, Work


def asked_for(piece: Work | None, key: SessionKey, due: Due) -> Work:
    """The piece once it has been asked for, again or for the first time."""
    asked = piece.asked + 1 if piece else 1
    at = due.at if asked >= due.after else due.later
    if piece is None:
        return Work(
            tenant=key.tenant, session=key.session, kind=due.kind, profile=due.profile, due=at
        )
    keeps_its_time = piece.lease or piece.attempts
    return replace(piece, profile=due.profile, asked=asked, due=piece.due if keeps_its_time else at)


def claimed(piece: Work | None, now: float, until: float, lease: str) -> Work | None:
    """The piece as its new holder has it; None if it cannot be claimed."""
    if piece is None or piece.due > now:
        return None
    return replace(piece, due=until, lease=lease)


def is_held(piece: Work | None, work: Work) -> bool:
    """Whether the claim that ``work`` came of still holds the piece."""
    return piece is not None and bool(work.lease) and piece.lease == work.lease


def finished(piece: Work, work: Work, again: float) -> Work | None:
    """What is left to do once ``work`` is done: None unless it was asked for meanwhile."""
    meanwhile = piece.asked - work.asked
    if meanwhile <= 0:
        return None
    return replace(piece, asked=meanwhile, attempts=0, due=again, lease="")


def put_off(piece: Work, due: float, *, failed: bool) -> Work:
    return replace(piece, attempts=piece.attempts + 1 if failed else 0, due=due, lease="")
