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
from proxy.admin.asking import STATES
from proxy.admin.idempotency import Idempotency
from proxy.admin.imports import Import, Reader, commit_of
from proxy.admin.objects import line_object, listed, message_object, recorded_object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait
from proxy.errors import ProxyError, message_not_found, session_not_found
from proxy.memory.model import Commit, Outcome, SessionKey
from proxy.memory.reading import NEWEST_TURN
from proxy.memory.store import StoreTimeout

ATTEMPTS = 4
PAGE = 100


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
        if not page.items and await self._store.session(key) is None:
            raise session_not_found()
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
            return await self._append(key, imported, f"im_{secrets.token_urlsafe(15)}", now)
        exchange = f"im_{attempt.mark}"
        if attempt.done or (attempt.again and await self._store.exchange(key, exchange)):
            return await self._recorded(key, exchange)
        response = await self._append(key, imported, exchange, now)
        await self._idempotency.done(key.tenant, attempt)
        return await self._recorded(key, exchange) if attempt.again else response

    async def _append(
        self, key: SessionKey, imported: Import, exchange: str, now: float
    ) -> Response:
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
        if await self._commit(key, commit) == "foreign":
            raise _owned_by_another()
        self._parts.on_recorded(key)
        seen = max((entry.position.seq for entry in snapshot.log), default=0)
        first = await self._seq(key, commit.drafts[0].card.id, seen) if commit.drafts else 0
        return await asyncio.to_thread(_created, commit, first)

    async def _recorded(self, key: SessionKey, exchange: str) -> Response:
        """The messages of an import, as they are by now."""
        found = await self._store.exchange(key, exchange)
        if found is None:
            missing = await self._store.session(key) is None
            raise session_not_found() if missing else message_not_found()
        lines = [await self._store.message(key, message) for message in found[1]]
        return reply(listed([line_object(line) for line in lines if line is not None]))

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

    async def _seq(self, key: SessionKey, message: str, after: int) -> int:
        """Where a message is that was committed after seq ``after``."""
        while True:
            page = await self._store.messages(key, STATES, after, PAGE)
            for found in page.items:
                if found.card.id == message:
                    return found.seq
            if page.after is None:  # somebody has deleted the session meanwhile
                raise session_not_found()
            after = int(page.after)


def _created(commit: Commit, first: int) -> Response:
    """The messages of a commit, which are neighbours in history from seq ``first`` on."""
    objects = [
        recorded_object(seq, draft.card, draft.state, draft.body)
        for seq, draft in enumerate(commit.drafts, first)
    ]
    return reply(listed(objects))


def _owned_by_another() -> ProxyError:
    message = "This session belongs to another user. Name the user it began with, or none."
    return ProxyError(403, "session_owner_mismatch", message, param="user")
