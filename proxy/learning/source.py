"""Where something learned is from."""

from __future__ import annotations

import msgspec


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A message that something was learned from; ``at`` in Unix seconds."""

    session: str
    message: str
    exchange: str
    at: float

    def within(self, session: str, exchange: str | None) -> bool:
        """Is it of this session, and with ``exchange`` of this one of its exchanges?"""
        return self.session == session and exchange in (None, self.exchange)
