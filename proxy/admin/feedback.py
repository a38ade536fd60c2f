"""What people say of answers, over the memory API."""

from __future__ import annotations

from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.objects import Object, reply
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait
from proxy.errors import ProxyError, memory_unavailable, message_not_found, session_not_found
from proxy.learning.feedback import LONGEST_COMMENT, Feedback, Score
from proxy.learning.feedback_desk import NoMessage
from proxy.learning.forgetting import Busy
from proxy.memory.archive import Session
from proxy.memory.model import SessionKey

SCORES = (-1, 0, 1)


class FeedbackOnMessages:
    """``/sessions/{id}/messages/{message}/feedback``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._desk, self._access = parts, parts.learned.feedback, access

    async def get(self, request: Request) -> Response:
        key, message = self._access.key(request), asking.message_id(request)
        try:
            found = await self._desk.given(await self._session(key), key, message)
        except NoMessage:
            raise message_not_found() from None
        if found is None:
            raise feedback_not_found()
        return reply(feedback_object(found))

    async def put(self, request: Request) -> Response:
        """Judge an answer; of a message the last word counts."""
        key, message = self._access.key(request), asking.message_id(request)
        body = await asking.body_of(request, self._parts.settings.server)
        fields = fields_of(self._parts.fields, body)
        score, comment = _score(fields), _comment(fields)
        session = await self._session(key)
        try:
            taken = await self._desk.take(session, key, message, score, comment)
        except NoMessage:
            must_not_wait(self._parts.spool, key)
            raise message_not_found() from None
        except Busy:
            raise memory_unavailable() from None
        return reply(feedback_object(taken))

    async def _session(self, key: SessionKey) -> Session:
        session = await self._parts.store.session(key)
        if session is None:
            must_not_wait(self._parts.spool, key)
            raise session_not_found()
        return session


def _score(fields: dict[str, bytes]) -> Score:
    try:
        score = asking.whole(fields.get("score", b"null"))
    except UNREADABLE:
        score = 2
    if score not in SCORES:
        raise invalid("score must be -1, 0 or 1.", "score")
    return cast(Score, score)


def _comment(fields: dict[str, bytes]) -> str:
    comment = (asking.text_field(fields, "comment") or "").strip()
    if len(comment) > LONGEST_COMMENT:
        raise invalid(f"comment must not have more than {LONGEST_COMMENT} characters.", "comment")
    return comment


def feedback_not_found() -> ProxyError:
    return ProxyError(404, "feedback_not_found", "Nothing has been said of this message.")


def feedback_object(feedback: Feedback) -> Object:
    return {
        "object": "message.feedback",
        "session_id": feedback.session,
        "message_id": feedback.message,
        "exchange_id": feedback.exchange,
        "score": feedback.score,
        "comment": feedback.comment or None,
        "created_at": feedback.created_at,
    }
