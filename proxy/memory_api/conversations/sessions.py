"""The sessions of a tenant: list them, newest activity first, search them, preview them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from proxy.chat.message import read_message
from proxy.errors import memory_unavailable, session_not_found
from proxy.memory import archive
from proxy.memory.archive import Archive, Page
from proxy.memory.model import SessionKey, State
from proxy.memory.recording.spool import Spool
from proxy.memory_api.api import Api
from proxy.memory_api.call import Tenant
from proxy.memory_api.fields import decode_cursor, encode_cursor, unknown_cursor
from proxy.memory_api.objects import session_object
from proxy.memory_api.openapi.operation import Link, Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import After, Limit, OfUser, SessionAt, flag
from proxy.memory_api.shapes.sessions import Session, SessionList
from proxy.recall.lexicon.folding import fold

TAG = "Sessions"
SESSIONS = "/memory/v1/sessions"
SESSION = f"{SESSIONS}/{{session}}"

BY_ID = {"session": "$response.body#/id"}
BY_PATH = {"session": "$request.path.session"}


@operation("GET", SESSION, TAG, links=(Link("listMessages", BY_ID), Link("deleteSession", BY_ID)))
async def get_session(api: Api, key: SessionAt) -> Session:
    """Get a session."""
    return session_object(await existing_session(api.store, key))


async def existing_session(store: Archive, key: SessionKey) -> archive.Session:
    """The session.  Raises ProxyError 404 where there is none, StoreError."""
    session = await store.session(key)
    if session is None:
        raise session_not_found()
    return session


def check_not_spooled(spool: Spool, key: SessionKey) -> None:
    """Raise ProxyError 503 while the spool has exchanges of the session, which come first."""
    if spool.has_waiting(key):
        raise memory_unavailable()


MAX_SCANNED = 1000
"""Sessions that a request with a query reads at most."""

CHUNK = 100
"""Sessions that are read at once for a query."""

PREVIEW_LENGTH = 140
"""Characters."""

PREVIEW_MESSAGES = 5
"""Active messages among which the first user message is searched."""

ACTIVE: tuple[State, ...] = ("active",)

AT_ONCE = 16
"""Previews that are read concurrently."""

NEWEST = {"session": "$response.body#/data/0/id"}

Query = Annotated[
    str,
    Parameter(
        "query",
        "query",
        "Is in the id, the title or the user; case is ignored.",
        read=lambda call: call.request.query_params.get("query", ""),
    ),
]
Preview = Annotated[bool, flag("preview", "Add to each session how it begins.")]


@operation(
    "GET",
    SESSIONS,
    TAG,
    links=(
        Link("getSession", NEWEST),
        Link("listMessages", NEWEST),
        Link("listSessions", {"after": "$response.body#/next"}),
    ),
)
async def list_sessions(
    api: Api,
    tenant: Tenant,
    user: OfUser,
    query: Query,
    preview: Preview,
    limit: Limit,
    after: After,
) -> SessionList:
    """List sessions.

    Newest activity first: what becomes active between two parts moves to the front, and the parts
    that follow do not have it. A part may be short, or empty, and have more behind it: follow
    `next` while `has_more` is true.
    """
    try:
        start = decode_cursor(after) if after is not None else None
        page = await _page(api, tenant, user, start, limit, fold(query))
    except ValueError:
        raise unknown_cursor() from None
    data = [session_object(session) for session in page.items]
    if preview:
        await _add_previews(api, tenant, data)
    return SessionList.part(data, encode_cursor(page.after) if page.after is not None else None)


async def _page(
    api: Api, tenant: str, user: str | None, after: str | None, limit: int, query: str
) -> Page[archive.Session]:
    """Up to ``limit`` sessions that match the query, among the next ``MAX_SCANNED``."""
    sessions = api.store.sessions
    if not query:
        return await sessions(tenant, user, after, limit)
    matching: list[archive.Session] = []
    remaining = MAX_SCANNED
    while remaining > 0 and len(matching) < limit:
        page = await sessions(tenant, user, after, min(remaining, CHUNK))
        while (size := _count_within(page.items, query, limit - len(matching))) < len(page.items):
            page = await sessions(tenant, user, after, size)
        matching += [session for session in page.items if _matches(session, query)]
        remaining -= len(page.items)
        after = page.after
        if after is None:
            break
    return Page(tuple(matching), after)


async def _add_previews(api: Api, tenant: str, sessions: Sequence[Session]) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def look(session: Session) -> None:
        async with free:
            session.preview = await _preview_text(api, SessionKey(tenant, session.id))

    await asyncio.gather(*map(look, sessions))


async def _preview_text(api: Api, key: SessionKey) -> str | None:
    """The first text that the user typed, if it is in the first messages; else None."""
    page = await api.store.messages(key, ACTIVE, 0, PREVIEW_MESSAGES)
    wires = [each.wire for each in page.items if each.card.role == "user"]
    messages = (read_message(wire, len(wire)) for wire in wires)
    typed = (message.typed_text.lstrip() for message in messages if message is not None)
    return next((text[:PREVIEW_LENGTH] for text in typed if text), None)


def _matches(session: archive.Session, query: str) -> bool:
    """Whether the query, which is folded, is in the id, the title or the user."""
    names = (session.id, session.details.title, session.user)
    return any(name is not None and query in fold(name) for name in names)


def _count_within(sessions: Sequence[archive.Session], query: str, room: int) -> int:
    """How many sessions to take so that no more than ``room`` of them match."""
    places = [place for place, session in enumerate(sessions) if _matches(session, query)]
    return len(sessions) if len(places) <= room else places[room - 1] + 1
