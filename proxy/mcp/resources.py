"""Sessions as resources, for clients that let their users choose what goes into a prompt."""

from __future__ import annotations

from urllib.parse import quote, unquote

from msgspec import UNSET

from proxy.errors import ProxyError, session_not_found
from proxy.mcp import shapes
from proxy.mcp.tools import session, sessions
from proxy.mcp.visit import Visit
from proxy.memory.ids import is_id
from proxy.memory_api.fields import invalid

PREFIX = "memory://sessions/"
TEMPLATE = PREFIX + "{session_id}"
MIME = "application/json"


def uri_of(session_id: str) -> str:
    return PREFIX + quote(session_id, safe="")


async def listed(visit: Visit, cursor: str | None) -> shapes.ListedSessions:
    """A part of all sessions that the connection may see.  Raises as operations do."""
    _must_read(visit)
    after = UNSET if cursor is None else cursor
    return await sessions(visit, shapes.ListSessions(limit=shapes.MOST_LISTED, after=after))


async def contents(visit: Visit, uri: str) -> shapes.SessionPart:
    """The end of a session.  Raises as operations do."""
    _must_read(visit)
    name = unquote(uri.removeprefix(PREFIX), errors="replace")
    if not uri.startswith(PREFIX) or not is_id(name):
        raise session_not_found()
    return await session(visit, shapes.ReadSession(session_id=name, limit=shapes.MOST_LISTED))


def _must_read(visit: Visit) -> None:
    if not visit.reads:
        raise _closed(visit)


def _closed(visit: Visit) -> ProxyError:
    return invalid(f"X-Memory-Mode: {visit.identity.mode} lets nothing read memory here.")
