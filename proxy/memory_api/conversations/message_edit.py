"""One message of a session: read it, edit it in place, remove it, and update what depends on it."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial

from proxy.chat.jsontext import UNREADABLE, decode_shallow, fields, join_fields
from proxy.chat.message import ChatMessage, read_message
from proxy.errors import memory_unavailable, message_not_found
from proxy.learning.feedback import drop_feedback
from proxy.memory.archive import Revision, StoredMessage
from proxy.memory.history.editing import edit_message, result_ids
from proxy.memory.history.reading import NEWEST_TURN, all_lines
from proxy.memory.model import MessageEdit, SessionKey, Summary, WorkRequest
from proxy.memory_api.api import Api
from proxy.memory_api.call import RequestConditions
from proxy.memory_api.conversations.checking import check_content, check_message
from proxy.memory_api.conversations.sessions import (
    BY_PATH,
    SESSION,
    check_not_spooled,
    existing_session,
)
from proxy.memory_api.fields import bytes_of, invalid
from proxy.memory_api.objects import line_object
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import MessageAt, SessionAt
from proxy.memory_api.shapes.messages import Message, MessageContent, MessageDeleted, WholeMessage
from proxy.recall.index import owner_of
from proxy.recall.indexing.indexer import MessageVersions, replace_unreadable, zero_old_vectors
from proxy.recall.ranking.packing import check_of

_INSTEAD = ("audio", "refusal")
"""Fields that an answer may have instead of content."""


async def revise(api: Api, key: SessionKey, revision: Revision, seqs: tuple[int, ...] = ()) -> bool:
    """Apply a revision; False if it conflicts with another change.  Requests a new summary if it
    dropped the current one.

    ``seqs``: the messages whose text is changed or removed, for recall's index.
    Raises StoreError.
    """
    before = await _current_summary(api, key)
    # Before and after: whoever embeds it meanwhile checks again after writing, too.
    await _zero_vectors(api, key, revision, seqs)
    if not await api.store.revise(key, revision):
        return False
    if seqs:
        await _zero_vectors(api, key, revision, seqs)
        api.caches.forget(key.tenant)
        api.caches.forget_session(key)
        api.on_edited(key, seqs)
    if before is not None and await _current_summary(api, key) != before:
        await _request_summary(api, key)
    return True


async def _zero_vectors(
    api: Api, key: SessionKey, revision: Revision, seqs: tuple[int, ...]
) -> None:
    """Zero the vectors of edited or removed messages: those of the user, and those made before the
    session had one."""
    session = await api.store.session(key) if seqs else None
    cards = [x.card for x in revision.edited if x.card.id not in revision.removed]
    versions = MessageVersions(seqs, [*map(check_of, cards)])
    for user in {None, session.user} if session else ():
        owner = owner_of(key, user)
        await replace_unreadable(api.store, owner, time.time())
        await zero_old_vectors(api.store, owner, key.session, versions)


async def _current_summary(api: Api, key: SessionKey) -> Summary | None:
    session = await api.store.session(key)
    return session.summary if session else None


async def _request_summary(api: Api, key: SessionKey) -> None:
    """Queue a summary under the profile of the newest exchange, if that has summaries."""
    snapshot = await api.store.load(key, NEWEST_TURN)
    name = snapshot.last.profile if snapshot.last else ""
    profile = api.settings.profile(name)
    if profile is not None and profile.summary.enabled:
        await api.store.enqueue(key, WorkRequest(kind="summary", profile=name, due_at=time.time()))


ATTEMPTS = 10
"""Attempts at an edit that conflicts with others."""

TAG = "Messages"
ONE = f"{SESSION}/messages/{{message}}"
SAME = {**BY_PATH, "message": "$request.path.message"}

New = MessageContent | WholeMessage


@operation("GET", ONE, TAG, links=(Link("deleteMessage", SAME), Link("getFeedback", SAME)))
async def get_message(api: Api, key: SessionAt, message_id: MessageAt) -> Message:
    """Get a message."""
    return line_object(await _line(api, key, message_id))


@operation(
    "PATCH",
    ONE,
    TAG,
    examples={"words": {"content": "What is worth seeing in Porto?"}},
    links=(Link("getMessage", SAME),),
)
async def update_message(
    api: Api,
    key: SessionAt,
    message_id: MessageAt,
    new: MessageContent | WholeMessage,
    conditions: RequestConditions,
) -> Message:
    """Edit a message in place.

    Give either `content` or the whole `message`. The old words are not kept anywhere.
    """
    # Results of calls that it does not make any more go with them, and so do examples and
    # proposals made of its turn.  What else was learned from it stays, and names it as its source.
    check_not_spooled(api.spool, key)
    for _ in range(ATTEMPTS):
        line = await _line(api, key, message_id)
        conditions.check(line_object(line))
        edited = await api.editing.run_for(key.tenant, partial(_edit_of, api, line, new))
        if await _apply_edit(api, key, line, edited):
            return line_object(await _line(api, key, message_id))
    raise memory_unavailable()


@operation("DELETE", ONE, TAG)
async def delete_message(
    api: Api, key: SessionAt, message_id: MessageAt, conditions: RequestConditions
) -> MessageDeleted:
    """Remove a message.

    With calls all their results go as well.
    """
    return MessageDeleted(
        id=message_id, deleted=True, ids=await remove(api, key, message_id, conditions)
    )


async def remove(
    api: Api, key: SessionKey, message_id: str, conditions: RequestConditions | None = None
) -> list[str]:
    """Remove a message with the results of its calls, examples, proposals and feedback; the ids.

    What else was learned from it stays.  Raises ProxyError, StoreError.
    """
    check_not_spooled(api.spool, key)
    for _ in range(ATTEMPTS):
        line = await _line(api, key, message_id)
        if conditions is not None:
            conditions.check(line_object(line))
        ids = (message_id, *await _results(api, key, line, line.card.calls))
        unchanged = (_unchanged(line),) if conditions is not None and conditions.has_any else ()
        await _forget_derived(api, key, line, ids)
        # Results have no passages.
        if await revise(api, key, Revision(edited=unchanged, removed=ids), (line.position.seq,)):
            return list(ids)
    raise memory_unavailable()


async def _line(api: Api, key: SessionKey, message_id: str) -> StoredMessage:
    line = await api.store.message(key, message_id)
    if line is None:
        await existing_session(api.store, key)
        raise message_not_found()
    return line


async def _apply_edit(api: Api, key: SessionKey, line: StoredMessage, new: MessageEdit) -> bool:
    """Apply an edit and remove the results of calls that are gone; False if the message changed
    meanwhile."""
    removed_calls = set(line.card.calls) - set(new.card.calls)
    ids = tuple(await _results(api, key, line, removed_calls))
    await _forget_derived(api, key, line, ids)
    is_changed = line.card.digest != new.card.digest
    seqs = (line.position.seq,) if is_changed else ()
    return await revise(api, key, Revision(edited=(new,), removed=ids), seqs)


async def _results(
    api: Api, key: SessionKey, line: StoredMessage, calls: set[str] | tuple[str, ...]
) -> list[str]:
    session = await api.store.session(key) if calls else None
    if session is None:
        return []
    after = line.position.seq
    cards = [x.card async for x in all_lines(api.store, key, session.end, after)]
    return result_ids(calls, cards)


async def _forget_derived(
    api: Api, key: SessionKey, line: StoredMessage, removed: Collection[str]
) -> None:
    """Remove the examples and proposals made of a message, and feedback on the removed ones.

    Called before the change, so that a retry still finds the message.
    """
    session = await api.store.session(key)
    user = (session.user if session else None) or ""
    await api.learned.drop_turn(key, user, line.position.turn)
    await drop_feedback(api.store, key, user, removed)


def _edit_of(api: Api, line: StoredMessage, new: New) -> MessageEdit:
    """Raises ProxyError 400."""
    if isinstance(new, WholeMessage):
        name, raw = "message", bytes_of(new.message)
    else:
        name, raw = "content", _with_content(line, bytes_of(new.content))
    message = read_message(raw, api.settings.memory.max_inline_media_bytes)
    if message is None:
        raise invalid("message must be an object.", "message")
    _check_same_message(line, message)
    if name == "message":
        check_message(raw, name)
    if message.blank:
        raise invalid("A message must say something. DELETE removes it.", name)
    return edit_message(line, message, api.counter(None))


def _with_content(line: StoredMessage, content: bytes) -> bytes:
    """The stored message with this content, without fields that stood in its place."""
    try:
        value = decode_shallow(content)
    except UNREADABLE:
        value = None
    check_content(value, "content")
    others = {name: raw for name, raw in fields(line.body).items() if name not in _INSTEAD}
    return join_fields({**others, "content": content})


def _check_same_message(line: StoredMessage, message: ChatMessage) -> None:
    """Raise ProxyError 400 if role or call differ: then it is no edit of this message."""
    if message.role != line.card.role:
        raise invalid(f"The role must stay {line.card.role}.", "message.role")
    if message.answers != line.card.answers:
        raise invalid("A result must stay that of its call.", "message.tool_call_id")


def _unchanged(line: StoredMessage) -> MessageEdit:
    """An edit that changes nothing, which makes a revision fail if the message has changed."""
    return MessageEdit(card=line.card, body=line.body, wire=line.wire, replaced_wire=line.original)
