"""The messages of a session: listed, and imported."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.idempotency import Attempt, Idempotency
from proxy.admin.imports import Import, Reader, commit_of
from proxy.admin.objects import line_object, listed, message_object, recorded_object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import ProxyError, memory_unavailable, message_not_found, session_not_found
from proxy.memory.archive import Line
from proxy.memory.model import Commit, Outcome, SessionKey
from proxy.memory.reading import NEWEST_TURN, all_lines
from proxy.memory.store import StoreTimeout

ATTEMPTS = 4


class Messages:
    """``/sessions/{id}/messages``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._idempotency = Idempotency(parts.shelves)

    async def listing(self, request: Request) -> Response:
        """History by seq, ascending; the active ones, or what ``?state=`` says."""
        key = self._access.key(request)
        states, limit = asking.states(request), asking.limit(request)
        page = await self._store.messages(key, states, asking.after_seq(request), limit)
        if not page.items:
            await the_session(self._store, key)
        return reply(listed([message_object(message) for message in page.items], page.after))

    async def create(self, request: Request) -> Response:
        """Append messages from elsewhere, in one commit; answers the created objects.

        An earlier attempt with the same Idempotency-Key is answered as its messages are by now,
        404 if they are gone.
        """
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        now = time.time()
        imported = await asyncio.to_thread(self._read, body, now)
        must_not_wait(self._parts.spool, key)
        attempt = await self._idempotency.attempt(request, key.tenant, body)
        if attempt is None:
            commit = await self._append(key, imported, f"im_{secrets.token_urlsafe(15)}", now)
            if commit is None:
                raise memory_unavailable()
            return await self._created(key, commit)
        exchange = f"im_{attempt.mark}"
        if not attempt.done:
            if not (attempt.again and await self._store.exchange(key, exchange)):
                await self._attempt(key, imported, exchange, attempt)
            await self._idempotency.done(key.tenant, attempt)
        return await self._recorded(key, exchange)

    async def _attempt(
        self, key: SessionKey, imported: Import, exchange: str, attempt: Attempt
    ) -> None:
        """Append what an earlier attempt has not; a first one that is refused leaves no trace."""
        try:
            commit = await self._append(key, imported, exchange, attempt.at)
            if commit is None and not attempt.again:
                raise memory_unavailable()
        except ProxyError:
            await self._idempotency.dropped(key.tenant, attempt)
            raise

    async def _append(
        self, key: SessionKey, imported: Import, exchange: str, now: float
    ) -> Commit | None:
        """None if the session or its user has been erased since ``now``.  Raises ProxyError 403."""
        snapshot = await self._store.load(key, NEWEST_TURN)
        commit = await asyncio.to_thread(
            commit_of,
            imported,
            snapshot,
            exchange,
            now,
            self._parts.counter(None),
            self._parts.settings.memory.ttl,
            self._parts.due_after_import(imported.user or snapshot.owner, now),
        )
        outcome = await self._commit(key, commit)
        if outcome == "foreign":
            raise _owned_by_another()
        if outcome == "erased":
            return None
        self._parts.on_recorded(key)
        return commit

    async def _created(self, key: SessionKey, commit: Commit) -> Response:
        """The messages of a commit, which are neighbours in history."""
        if not commit.drafts:
            return reply(listed([]))
        first = await self._store.message(key, commit.drafts[0].card.id)
        if first is None:  # somebody has deleted the session meanwhile
            raise session_not_found()
        return await asyncio.to_thread(_recorded, commit, first.position.seq)

    async def _recorded(self, key: SessionKey, exchange: str) -> Response:
        """The messages of an import, as they are by now."""
        found = await self._store.exchange(key, exchange)
        session = await self._store.session(key)
        if found is None or session is None:
            raise session_not_found() if session is None else message_not_found()
        first = await self._store.message(key, found[1][0]) if found[1] else None
        lines: list[Line] = []
        if first is not None:
            async for line in all_lines(self._store, key, session.end, first.position.seq - 1):
                if line.card.exchange != exchange:
                    break
                lines.append(line)
        return reply(listed([line_object(line) for line in lines]))

    def _read(self, body: bytes, now: float) -> Import:
        limit = self._parts.settings.memory.max_inline_media_bytes
        return Reader(self._parts, limit).read(body, now)

    async def _commit(self, key: SessionKey, commit: Commit) -> Outcome:
        """Commit, with more patience than a chat has: a large import can outlast one timeout.

        A store that was only slow has it already, and says ``duplicate``.
        """
        for _ in range(ATTEMPTS - 1):
            with suppress(StoreTimeout):
                return await self._store.commit(key, commit)
        return await self._store.commit(key, commit)


def _recorded(commit: Commit, first: int) -> Response:
    """The messages of a commit, from seq ``first`` on."""
    objects = [
        recorded_object(seq, draft.card, draft.state, draft.body)
        for seq, draft in enumerate(commit.drafts, first)
    ]
    return reply(listed(objects))


def _owned_by_another() -> ProxyError:
    message = "This session belongs to another user. Name the user it began with, or none."
    return ProxyError(403, "session_owner_mismatch", message, param="user")
