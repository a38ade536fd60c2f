"""A session that goes on from another one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.idempotency import Attempt, Idempotency
from proxy.admin.imports import fields_of
from proxy.admin.objects import reply, session_object
from proxy.admin.parts import AdminParts
from proxy.admin.session_edit import title_in
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import (
    ProxyError,
    invalid_session_id,
    message_not_found,
    session_not_found,
)
from proxy.learning.lesson_marks import read_on
from proxy.memory.forking import Fork, NoMessage, forked
from proxy.memory.model import SessionKey
from proxy.memory.reading import read_session

FIELDS = ("id", "until", "title")


class Forks:
    """``/sessions/{id}/fork``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._idempotency = Idempotency(parts.shelves)

    async def fork(self, request: Request) -> Response:
        """A new session with everything up to and including a message, or with all: ``forked``.

        What waits in the spool belongs to it, so nothing is forked before that has arrived: 503.
        """
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fork = _fork(fields_of(self._parts.fields, body))
        new = SessionKey(key.tenant, fork.id)
        must_not_wait(self._parts.spool, key)
        must_not_wait(self._parts.spool, new)
        attempt = await self._idempotency.attempt(request, key.tenant, body)
        if attempt is None:
            return await self._made(key, new, fork)
        response = await self._once(key, new, fork, attempt)
        await self._idempotency.done(key.tenant, attempt)
        return response

    async def _once(
        self, key: SessionKey, new: SessionKey, fork: Fork, attempt: Attempt
    ) -> Response:
        """What an earlier attempt has made is answered as it is by now, 404 if it is gone.

        It is known by its time: all attempts fork at the time of the first.
        """
        fork = replace(fork, at=attempt.at)
        if attempt.done or (attempt.again and await self._is_there(new, fork)):
            return await self._session(new)
        try:
            return await self._made(key, new, fork)
        except ProxyError:
            if await self._is_there(new, fork):
                return await self._session(new)
            await self._idempotency.dropped(key.tenant, attempt)
            raise

    async def _is_there(self, new: SessionKey, fork: Fork) -> bool:
        found = await self._store.session(new)
        return found is not None and found.created_at == fork.at

    async def _made(self, key: SessionKey, new: SessionKey, fork: Fork) -> Response:
        archived = await read_session(self._store, key)
        if archived is None:
            raise session_not_found()
        try:
            copy = await asyncio.to_thread(forked, archived, fork)
        except NoMessage:
            raise message_not_found() from None
        if not await self._store.restore(new, copy):
            raise session_exists()
        await read_on(self._parts.shelves, archived.session, copy.session, key.tenant)
        self._parts.on_recorded(new)
        return await self._session(new)

    async def _session(self, key: SessionKey) -> Response:
        return reply(session_object(await the_session(self._store, key)), 201)


def _fork(fields: dict[str, bytes]) -> Fork:
    """Raises ProxyError 400."""
    others = [name for name in fields if name not in FIELDS]
    if others:
        raise invalid(f"A fork has {', '.join(FIELDS)}.", others[0])
    id = asking.text_field(fields, "id")
    if id is None or not asking.is_id(id.encode("utf-8", "replace")):
        raise invalid_session_id("id")
    return Fork(id, time.time(), asking.text_field(fields, "until"), title_in(fields))


def session_exists() -> ProxyError:
    message = "There is a session with this id already. Choose another, or delete that session."
    return ProxyError(409, "session_exists", message, param="id")
