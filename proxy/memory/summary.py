"""What stands in for the turns that a window has evicted.

A session has one summary at a time, made progressively: the one before and what has been evicted
since give the next.  Every version is kept, so that a rewind behind what a summary covers falls
back to the newest version that does not cover it.
"""

from __future__ import annotations

import msgspec

MOST_VERSIONS = 100
"""Versions that are kept; of more, the oldest go."""


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of the active log before ``until`` (turn, seq), as far as ``seen`` (a seq).

    What joins an old turn later, an answer to a call of long ago, has a seq above ``seen`` and is
    not covered.  ``covers_until`` is the seq of the last message covered, 0 if none.  ``tokens``
    are those of the text.  ``edited``: by a person.  ``model`` wrote it.  Times are Unix seconds.
    """

    text: str
    version: int
    until: tuple[int, int] = (0, 0)
    seen: int = 0
    covers_until: int = 0
    tokens: int = 0
    edited: bool = False
    model: str | None = None
    created_at: float = 0.0

    def covers(self, position: tuple[int, int]) -> bool:
        return position < self.until and position[1] <= self.seen
