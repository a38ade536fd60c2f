"""Feedback on answers: get it, send it."""

from __future__ import annotations

from proxy.errors import message_not_found, session_not_found
from proxy.learning import feedback as learned
from proxy.learning.feedback_service import NoMessage
from proxy.memory.archive import Session
from proxy.memory.model import SessionKey
from proxy.memory_api.api import Api
from proxy.memory_api.conversations.message_edit import ONE, SAME, TAG
from proxy.memory_api.conversations.sessions import check_not_spooled
from proxy.memory_api.errors import feedback_not_found
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import MessageAt, SessionAt
from proxy.memory_api.shapes.messages import Feedback, NewFeedback

PATH = f"{ONE}/feedback"


@operation("GET", PATH, TAG, errors=(feedback_not_found,))
async def get_feedback(api: Api, key: SessionAt, message: MessageAt) -> Feedback:
    """Get the feedback on an answer."""
    try:
        feedback = await api.learned.feedback.latest(await _session(api, key), key, message)
    except NoMessage:
        raise message_not_found() from None
    if feedback is None:
        raise feedback_not_found()
    return feedback_object(feedback)


@operation(
    "POST",
    PATH,
    TAG,
    examples={"praise": {"score": 1, "comment": "Short and right."}},
    links=(Link("getFeedback", SAME),),
)
async def send_feedback(api: Api, key: SessionAt, message: MessageAt, new: NewFeedback) -> Feedback:
    """Judge an answer.

    Of a message the last word counts.
    """
    session, comment = await _session(api, key), (new.comment or "").strip()
    try:
        feedback = await api.learned.feedback.record(session, key, message, new.score, comment)
    except NoMessage:
        check_not_spooled(api.spool, key)
        raise message_not_found() from None
    return feedback_object(feedback)


async def _session(api: Api, key: SessionKey) -> Session:
    session = await api.store.session(key)
    if session is None:
        check_not_spooled(api.spool, key)
        raise session_not_found()
    return session


def feedback_object(feedback: learned.Feedback) -> Feedback:
    return Feedback(
        session_id=feedback.session,
        message_id=feedback.message,
        exchange_id=feedback.exchange,
        score=feedback.score,
        comment=feedback.comment or None,
        created_at=feedback.created_at,
    )
