"""Whose memory was opened by whom, as log lines say it: by hashes."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from proxy.logs import hashed

CALLER = "memory.caller"
"""Where a request's scope has a ``Seen``, once somebody was let in."""


class Seen(NamedTuple):
    """Whose memory was opened; ``by`` is "admin" where the administrator did."""

    tenant: str
    by: str | None = None


def who(request: Request) -> dict[str, str]:
    """Who asks, and whose memory it is, as log lines say it."""
    seen: Seen | None = request.scope.get(CALLER)
    if seen is None:
        return {}
    told = {"tenant": hashed(seen.tenant)}
    return {"by": seen.by, **told} if seen.by else told
