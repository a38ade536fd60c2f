"""A person's profile: one JSON document, with every version that it had.

It is kept under ("users", U): "profile" holds the current one, "profiles" its versions, "card" what
of it goes into prompts.  Who changes the current one compares its version first, so that it is the
lock of all three.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from proxy.learning.profile_patch import Document, Operation
from proxy.learning.source import Source
from proxy.memory.items import PEOPLE, Place

FEATURE = "profile"

MOST_VERSIONS = 200
"""Of more, the two oldest become one."""

Origin = Literal["learned", "edited"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The current document.  ``version`` is its number, ``kept`` those of all versions there are.

    ``last`` is the highest number there ever was: none is given twice.
    """

    document: Document = {}
    version: int = 0
    last: int = 0
    kept: tuple[int, ...] = ()


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document and the patch that made it from the version before.  ``created_at``: Unix seconds.

    ``rolled_back_to`` is the number of the version that it repeats; its patch says the same.
    ``before`` is where each member of the document is from, of a version into which all before it
    were folded: its patch is history.
    """

    version: int
    document: Document
    patch: tuple[Operation, ...] = ()
    origin: Origin = "learned"
    sources: tuple[Source, ...] = ()
    created_at: float = 0.0
    rolled_back_to: int | None = None
    before: dict[str, tuple[Source, ...]] | None = None


def profile_place(user: str) -> Place:
    return Place((PEOPLE, user, FEATURE), "current")


def version_place(user: str, version: int) -> Place:
    """Where a version is kept: in the order of their numbers."""
    return Place((PEOPLE, user, "profiles"), f"{version:08}")
