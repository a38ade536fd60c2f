"""One message of a session: looked at, edited in place, removed."""

from __future__ import annotations

import asyncio
import json

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import is_conditional, must_match
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.message_check import check_content, check_message
from proxy.admin.objects import Object, line_object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.revising import Revising
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import memory_unavailable, message_not_found
from proxy.learning.feedback import drop_feedback
from proxy.learning.forgetting import Busy
from proxy.learning.message_forgetting import forget_examples, forget_proposals
from proxy.memory.archive import Edited, Line, Revision
from proxy.memory.editing import edited, results_of
from proxy.memory.model import SessionKey
from proxy.memory.reading import all_lines
from proxy.memory.transcript import Said

ATTEMPTS = 10
"""How often an edit is tried again that another has overtaken."""

CHANGEABLE = ("content", "message")

Fields = dict[str, bytes]


class OneMessage:
    """``/sessions/{id}/messages/{message}``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._revising = Revising(parts)

    async def get(self, request: Request) -> Response:
        key = self._access.key(request)
        return reply(line_object(await self._line(key, asking.message_id(request))))

    async def change(self, request: Request) -> Response:
        """Other words in its place, under the same id; the old ones are not kept anywhere.

        Results of calls that it does not make any more go with them, and so do examples and
        proposals made of its turn.  What else was learned from it stays, and names it as its
        source.
        """
        key, wanted = self._access.key(request), asking.message_id(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fields = fields_of(self._parts.fields, body)
        must_not_wait(self._parts.spool, key)
        for _ in range(ATTEMPTS):
            line = await self._line(key, wanted)
            must_match(request, line_object(line))
            new = await asyncio.to_thread(self._edited, line, fields)
            if await self._put(key, line, new):
                return reply(line_object(await self._line(key, wanted)))
        raise memory_unavailable()

    async def delete(self, request: Request) -> Response:
        """Remove it, and with calls all their results; examples, proposals and feedback go as well.

        What else was learned from it stays, and names it as its source.
        """
        key, wanted = self._access.key(request), asking.message_id(request)
        must_not_wait(self._parts.spool, key)
        for _ in range(ATTEMPTS):
            line = await self._line(key, wanted)
            must_match(request, line_object(line))
            ids = (wanted, *await self._results(key, line, line.card.calls))
            still = (_unchanged(line),) if is_conditional(request) else ()
            await self._forget(key, line, ids)
            revision = Revision(edited=still, removed=ids)
            # Results have no passages.
            if await self._revising.revise(key, revision, (line.position.seq,)):
                return reply(_deleted(wanted, ids))
        raise memory_unavailable()

    async def _line(self, key: SessionKey, wanted: str) -> Line:
        line = await self._store.message(key, wanted)
        if line is None:
            await the_session(self._store, key)
            raise message_not_found()
        return line

    async def _put(self, key: SessionKey, line: Line, new: Edited) -> bool:
        """False if it is another message by now."""
        gone = set(line.card.calls) - set(new.card.calls)
        ids = tuple(await self._results(key, line, gone))
        await self._forget(key, line, ids)
        moved = line.card.digest != new.card.digest
        seqs = (line.position.seq,) if moved else ()
        return await self._revising.revise(key, Revision(edited=(new,), removed=ids), seqs)

    async def _results(
        self, key: SessionKey, line: Line, calls: set[str] | tuple[str, ...]
    ) -> list[str]:
        session = await self._store.session(key) if calls else None
        if session is None:
            return []
        after = line.position.seq
        cards = [x.card async for x in all_lines(self._store, key, session.end, after)]
        return results_of(calls, cards)

    async def _forget(self, key: SessionKey, line: Line, gone: tuple[str, ...]) -> None:
        """What repeats a message, and what was said of those that go.

        First: who tries again must find the message.
        """
        session = await self._store.session(key)
        user = (session.user if session else None) or ""
        learned, turn = self._parts.learned, line.position.turn
        try:
            if user:
                await forget_examples(learned.episodes, self._store, key, user, turn)
            await forget_proposals(learned.remarks, self._store, key, turn)
        except Busy:
            raise memory_unavailable() from None
        await drop_feedback(self._parts.shelves, key, user, gone)

    def _edited(self, line: Line, fields: Fields) -> Edited:
        """Raises ProxyError 400."""
        if len(fields) != 1 or not set(fields) <= set(CHANGEABLE):
            raise invalid("Give either content or message.", "content")
        name = next(iter(fields))
        raw = fields[name] if name == "message" else self._with_content(line, fields[name])
        said = self._parts.read_message(raw, self._parts.settings.memory.max_inline_media_bytes)
        if said is None:
            raise invalid("message must be an object.", "message")
        _is_the_same(line, said)
        if name == "message":
            check_message(raw, name)
        if said.blank:
            raise invalid("A message must say something. DELETE removes it.", name)
        return edited(line, said, self._parts.counter(None))

    def _with_content(self, line: Line, content: bytes) -> bytes:
        """The message as later requests carry it, with this content."""
        try:
            value = self._parts.decode(content)
        except UNREADABLE:
            value = None
        check_content(value, "content")
        pieces = {**self._parts.fields(line.body), "content": content}
        return b"{" + b",".join(_name(name) + b":" + raw for name, raw in pieces.items()) + b"}"


def _name(name: str) -> bytes:
    """A field's name in JSON, whatever is in it."""
    return json.dumps(name).encode("ascii")


def _is_the_same(line: Line, said: Said) -> None:
    """Raise ProxyError 400 for what is another message, and not other words for this one."""
    if said.role != line.card.role:
        raise invalid(f"The role must stay {line.card.role}.", "message.role")
    if said.answers != line.card.answers:
        raise invalid("A result must stay that of its call.", "message.tool_call_id")


def _unchanged(line: Line) -> Edited:
    """An edit that changes nothing, so that a change is made only where nobody else has."""
    was = line.body if line.wire is None else line.wire
    return Edited(card=line.card, body=line.body, wire=line.wire, was=was)


def _deleted(message: str, ids: tuple[str, ...]) -> Object:
    return {"object": "session.message.deleted", "id": message, "deleted": True, "ids": ids}
