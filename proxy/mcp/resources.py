"""Sessions as MCP resources, for clients in which users choose what goes into a prompt."""

from __future__ import annotations

from urllib.parse import quote, unquote

from msgspec import UNSET

from proxy.errors import session_not_found
from proxy.mcp import shapes
from proxy.mcp.tools import session, sessions
from proxy.mcp.visit import Visit
from proxy.memory.ids import is_id

PREFIX = "memory://sessions/"
TEMPLATE = PREFIX + "{session_id}"
MIME = "application/json"


def uri_of(session_id: str) -> str:
    return PREFIX + quote(session_id, safe="")


async def listed(visit: Visit, cursor: str | None) -> shapes.ListedSessions:
    """A page of the sessions that the connection may see.  Raises what operations raise."""
    _must_read(visit)
    after = UNSET if cursor is None else cursor
    return await sessions(visit, shapes.ListSessions(limit=shapes.MAX_LISTED, after=after))


async def contents(visit: Visit, uri: str) -> shapes.SessionPart:
    """The last messages of a session.  Raises what operations raise."""
    _must_read(visit)
    name = unquote(uri.removeprefix(PREFIX), errors="replace")
    if not uri.startswith(PREFIX) or not is_id(name):
        raise session_not_found()
    return await session(visit, shapes.ReadSession(session_id=name, limit=shapes.MAX_LISTED))


def _must_read(visit: Visit) -> None:
    if not visit.reads:
        raise visit.refusal("read")
