"""The messages of a session: listed, and imported."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated

from starlette.responses import Response

from proxy.errors import ProxyError, memory_unavailable, session_not_found
from proxy.memory.archive import StoredMessage
from proxy.memory.history.reading import NEWEST_TURN, all_lines
from proxy.memory.model import Commit, Outcome, SessionKey, State
from proxy.memory.store import StoreTimeout
from proxy.memory_api.api import Api
from proxy.memory_api.call import IdempotentCall
from proxy.memory_api.conversations.message_edit import TAG
from proxy.memory_api.conversations.sessions import (
    BY_PATH,
    SESSION,
    check_not_spooled,
    existing_session,
)
from proxy.memory_api.errors import idempotency_key_spent, invalid_user_id, session_owner_mismatch
from proxy.memory_api.idempotency import Attempt, IdempotentRequest
from proxy.memory_api.objects import line_object, message_object, recorded_object, reply
from proxy.memory_api.openapi.operation import Link, Parameter
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import AfterSeq, Limit, SessionAt, several, words
from proxy.memory_api.shapes.messages import MessageList, NewMessages
from proxy.memory_api.transfer.import_messages import Import, commit_of, read_import

ATTEMPTS = 4

ALL = f"{SESSION}/messages"
FIRST = {**BY_PATH, "message": "$response.body#/data/0/id"}
SECOND = {**BY_PATH, "message": "$response.body#/data/1/id"}
ITS_EXCHANGE = {**BY_PATH, "exchange": "$response.body#/data/0/exchange_id"}

STATES: tuple[State, ...] = ("active", "superseded")

States = Annotated[
    Sequence[State],
    Parameter(
        "state",
        "query",
        "Which: the active log, or branches that were left as well.",
        {**words(*STATES), "default": "active"},
        example="active,superseded",
        read=several("state", STATES, STATES[:1]),
    ),
]


@operation(
    "GET",
    ALL,
    TAG,
    links=(
        Link("getMessage", FIRST),
        Link("updateMessage", FIRST, {"content": "What is worth seeing in Porto?"}),
        Link("activateMessage", FIRST),
        Link("deleteMessage", FIRST),
        Link("sendFeedback", SECOND),
        Link("getExchange", ITS_EXCHANGE),
        Link("listMessages", {**BY_PATH, "after": "$response.body#/next"}),
    ),
)
async def list_messages(
    api: Api, key: SessionAt, states: States, limit: Limit, after: AfterSeq
) -> MessageList:
    """List messages.

    By seq, ascending. `after` is a seq, so a client may jump.
    """
    page = await api.store.messages(key, states, after, limit)
    if not page.items:
        await existing_session(api.store, key)
    return MessageList.part([message_object(message) for message in page.items], page.after)


@operation(
    "POST",
    ALL,
    TAG,
    answer=MessageList,
    creates_tenant=True,
    examples={
        "conversation": {
            "user": "ada",
            "messages": [
                {"role": "user", "content": "What is worth seeing in Lisbon?"},
                {"role": "assistant", "content": "The Alfama, early in the morning."},
            ],
        }
    },
    errors=(invalid_user_id, session_owner_mismatch),
    links=(
        Link("getSession", BY_PATH),
        Link("listMessages", BY_PATH),
        Link("listExchanges", BY_PATH),
        Link("getMessage", FIRST),
        Link("deleteMessage", FIRST),
        Link("forkSession", BY_PATH, {"id": "trip-to-porto"}),
        Link("rewindSession", BY_PATH, {"turns": 1}),
        Link("exportSession", BY_PATH),
        Link("deleteSession", BY_PATH),
    ),
)
async def import_messages(
    api: Api, key: SessionAt, new: NewMessages, idempotent: IdempotentCall
) -> MessageList | Response:
    """Append messages.

    In one exchange, or not at all: each must be a message that upstreams can read. A session
    begins with its first message. Leading system messages become the remembered ones.
    """
    now = time.time()
    read = partial(read_import, new, now, api.settings.memory.max_inline_media_bytes)
    imported = await api.editing.run_for(key.tenant, read)
    check_not_spooled(api.spool, key)
    attempt = await idempotent.attempt()
    if attempt is None:
        commit = await _append(api, key, imported, f"im_{secrets.token_urlsafe(15)}", now)
        if commit is None:
            raise memory_unavailable()
        return await _created(api, key, commit)
    exchange = f"im_{attempt.mark}"
    if not attempt.done:
        if not (attempt.is_repeat and await api.store.exchange(key, exchange)):
            await _append_once(api, key, imported, attempt, idempotent)
        await idempotent.done(attempt)
    return await _recorded(api, key, exchange)


async def _append_once(
    api: Api, key: SessionKey, imported: Import, attempt: Attempt, idempotent: IdempotentRequest
) -> None:
    """Append unless an earlier attempt did; a first attempt that is refused leaves no record."""
    try:
        commit = await _append(api, key, imported, f"im_{attempt.mark}", attempt.at)
        if commit is None and not attempt.is_repeat:
            raise memory_unavailable()
    except ProxyError:
        await idempotent.drop(attempt)
        raise


async def _append(
    api: Api, key: SessionKey, imported: Import, exchange: str, now: float
) -> Commit | None:
    """None if the session or its user has been erased since ``now``.  Raises ProxyError 403."""
    snapshot = await api.store.load(key, NEWEST_TURN)
    make_commit = partial(
        commit_of,
        imported,
        snapshot,
        exchange,
        now,
        api.counter(None),
        api.settings.memory.ttl,
        api.due_after_import(imported.user or snapshot.owner, now),
    )
    commit = await api.editing.run_for(key.tenant, make_commit)
    outcome = await _commit(api, key, commit)
    if outcome == "foreign":
        raise session_owner_mismatch()
    if outcome == "erased":
        return None
    api.on_recorded(key)
    return commit


async def _commit(api: Api, key: SessionKey, commit: Commit) -> Outcome:
    """Commit, and again after timeouts: a large import may take longer than one.

    If an earlier attempt succeeded after its timeout, the outcome is ``duplicate``.
    """
    for _ in range(ATTEMPTS - 1):
        with suppress(StoreTimeout):
            return await api.store.commit(key, commit)
    return await api.store.commit(key, commit)


async def _created(api: Api, key: SessionKey, commit: Commit) -> Response:
    """The answer with the messages of a commit, which have consecutive seqs."""
    if not commit.drafts:
        return reply(MessageList.part([]))
    first = await api.store.message(key, commit.drafts[0].card.id)
    if first is None:  # somebody has deleted the session meanwhile
        raise session_not_found()
    make_answer = partial(_answer_with, commit, first.position.seq)
    return await api.editing.run_for(key.tenant, make_answer)


def _answer_with(commit: Commit, first: int) -> Response:
    """The answer with the messages of a commit, from seq ``first`` on; slow for many."""
    objects = [
        recorded_object(seq, draft.card, draft.state, draft.body)
        for seq, draft in enumerate(commit.drafts, first)
    ]
    return reply(MessageList.part(objects))


async def _recorded(api: Api, key: SessionKey, exchange: str) -> MessageList:
    """The current messages of an earlier import; ProxyError 410 if they are deleted."""
    exchange_and_ids = await api.store.exchange(key, exchange)
    session = await api.store.session(key)
    if exchange_and_ids is None or session is None:
        raise idempotency_key_spent()
    first = await api.store.message(key, exchange_and_ids[1][0]) if exchange_and_ids[1] else None
    lines: list[StoredMessage] = []
    if first is not None:
        async for line in all_lines(api.store, key, session.end, first.position.seq - 1):
            if line.card.exchange != exchange:
                break
            lines.append(line)
    return MessageList.part([line_object(line) for line in lines])
