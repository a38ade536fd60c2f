"""Going back in a conversation: turns taken back, and another branch of it made the active one.

Nothing leaves history by this: messages are superseded, and can be made active again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import must_match
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.objects import reply, session_object
from proxy.admin.parts import AdminParts
from proxy.admin.revising import Revising
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import message_not_found
from proxy.memory.archive import Line, Revision, Session
from proxy.memory.branches import Switch, switch_to
from proxy.memory.editing import behind
from proxy.memory.log import last_turns
from proxy.memory.model import SessionKey
from proxy.memory.reading import WHOLE_LOG, all_exchanges, all_lines


@dataclass(frozen=True, slots=True)
class Back:
    """How far to go back: so many turns, or to before a message."""

    turns: int | None = None
    to: str | None = None


class Rewind:
    """``/sessions/{id}/rewind`` and ``/sessions/{id}/messages/{message}/activate``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._revising = Revising(parts)

    async def rewind(self, request: Request) -> Response:
        """Supersede the last turns, or a message and all that follow it.

        What is recorded meanwhile stays: only what was there to be seen is taken back.
        """
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        back = _back(fields_of(self._parts.fields, body))
        must_not_wait(self._parts.spool, key)
        await the_session(self._store, key)
        gone = await self._behind(key, back)
        # Behind it: then what is taken back is what the caller has seen.
        must_match(request, session_object(await the_session(self._store, key)))
        await self._revising.revise(key, Revision(superseded=tuple(gone)))
        return reply(session_object(await the_session(self._store, key)))

    async def activate(self, request: Request) -> Response:
        """Make the branch that a message belongs to the active one: see ``switch_to``.

        Nothing changes if it is active already.
        """
        key, wanted = self._access.key(request), asking.message_id(request)
        must_not_wait(self._parts.spool, key)
        switch = await self._switch(key, await the_session(self._store, key), wanted)
        must_match(request, session_object(await the_session(self._store, key)))
        if switch.activated or switch.superseded:
            revision = Revision(superseded=switch.superseded, activated=switch.activated)
            await self._revising.revise(key, revision)
        return reply(session_object(await the_session(self._store, key)))

    async def _behind(self, key: SessionKey, back: Back) -> list[str]:
        log = (await self._store.load(key, WHOLE_LOG)).log
        if back.to is None:
            return [entry.card.id for entry in last_turns(log, back.turns or 0)]
        found = behind(log, back.to)
        if found is not None:
            return found
        if await self._store.message(key, back.to) is None:
            raise message_not_found()
        raise invalid("to is superseded already: name an active message.", "to")

    async def _switch(self, key: SessionKey, session: Session, wanted: str) -> Switch:
        lines: list[Line] = []
        async for line in all_lines(self._store, key, session.end):
            lines.append(line._replace(body=b"", wire=None))
        newest_first = [placed async for placed in all_exchanges(self._store, key, session.end)]
        found = await asyncio.to_thread(switch_to, lines, newest_first[::-1], wanted)
        if found is None:
            raise message_not_found()
        return found


def _back(fields: dict[str, bytes]) -> Back:
    """Raises ProxyError 400 unless there is exactly one of the two."""
    others = [name for name in fields if name not in ("turns", "to")]
    if others or len(fields) != 1:
        raise invalid("Give either turns or to.", others[0] if others else "turns")
    if "to" in fields:
        to = asking.text_field(fields, "to")
        if not to:
            raise invalid("to must be the id of a message.", "to")
        return Back(to=to)
    try:
        turns = asking.whole(fields["turns"])
    except UNREADABLE:
        turns = 0
    if turns < 1:
        raise invalid("turns must be a whole number from 1.", "turns")
    return Back(turns=turns)
