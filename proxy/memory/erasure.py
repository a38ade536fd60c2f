"""Erasing for good: the mark that keeps what is older from coming back.

An exchange that was under way when its session or its person was erased, one that waits in the
spool of a host that was down, a summary or a fact that a model was writing: all of them began
before the mark and are refused.  The mark holds ids and a time, no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

MARKED_SECONDS = 7 * 24 * 3600
"""How long a mark is kept at least: what waits in a spool for longer is recorded again."""


class Subject(NamedTuple):
    """Who or what is erased: a person of a tenant, or, with ``session``, one conversation."""

    tenant: str
    user: str = ""
    session: str = ""


class Erasures(Protocol):
    """Implemented by every store.  All methods raise StoreError; times are Unix seconds.

    ``commit`` refuses with "erased" an exchange that started at or before the mark of its session,
    of the user it came with, or of the session's owner.  ``put_summary`` and ``change_items``
    refuse what was made from things read at or before the mark (their ``since``).
    """

    async def mark(self, subject: Subject, until: float) -> None:
        """From now on nothing of it that began at or before ``until`` is written.

        Takes the place of an earlier mark; ``until`` may lie ahead, while an erasure is under way.
        """
        ...

    async def erased(self, subjects: Sequence[Subject], began: float) -> bool:
        """Would what began then be refused, because one of these is marked?"""
        ...

    async def unmark(self, subject: Subject) -> None:
        """Let everything be written again: an import has brought it back."""
        ...
