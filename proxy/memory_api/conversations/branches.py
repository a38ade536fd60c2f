"""Forks of sessions, rewinding, and switching branches.

History stays complete: messages are superseded, and can be made active again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from msgspec.structs import replace

from proxy.errors import ProxyError, memory_unavailable, session_not_found
from proxy.learning.batch import copy_read_marks
from proxy.memory import archive
from proxy.memory.archive import Revision, StoredMessage
from proxy.memory.erasure import steady_now
from proxy.memory.history import branches
from proxy.memory.history.branches import NoMessage, Switch, fork_archive, switch_to
from proxy.memory.history.editing import ids_from
from proxy.memory.history.reading import (
    MAX_HELD_BYTES,
    TooLarge,
    exchanges_oldest_first,
    lines_without_texts,
    read_session,
)
from proxy.memory.model import Entry, SessionKey
from proxy.memory.reconciliation.match import last_turns
from proxy.memory_api.api import Api
from proxy.memory_api.call import IdempotentCall, RequestConditions
from proxy.memory_api.conversations.message_edit import ATTEMPTS, revise
from proxy.memory_api.conversations.message_edit import ONE as MESSAGE
from proxy.memory_api.conversations.message_edit import TAG as MESSAGES
from proxy.memory_api.conversations.sessions import (
    BY_ID,
    SESSION,
    TAG,
    check_not_spooled,
    existing_session,
)
from proxy.memory_api.errors import (
    idempotency_key_spent,
    message_not_found,
    session_exists,
    session_too_large,
)
from proxy.memory_api.fields import invalid
from proxy.memory_api.idempotency import Attempt, IdempotentRequest
from proxy.memory_api.objects import session_object
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import MessageAt, SessionAt
from proxy.memory_api.shapes.sessions import Fork, RewindTo, RewindTurns, Session

MAX_FORK_BYTES = 256_000_000
"""The largest session that may be forked, in bytes of messages."""


@operation(
    "POST",
    f"{SESSION}/fork",
    TAG,
    status=201,
    examples={"copy": {"id": "trip-to-porto", "title": "What if Porto?"}},
    errors=(message_not_found, session_exists, session_too_large),
    links=(
        Link("getSession", BY_ID),
        Link("listMessages", BY_ID),
        Link("updateSession", BY_ID, {"title": "A fork"}),
        Link("deleteSession", BY_ID),
    ),
)
async def fork_session(
    api: Api, key: SessionAt, request: Fork, idempotent: IdempotentCall
) -> Session:
    """Go on from a session in a new one.

    The new session has everything up to and including `until`, and the same user.
    """
    # What waits in the spool belongs to it, so nothing is forked before that has arrived: 503.
    fork = branches.Fork(request.id, time.time(), request.until, request.title)
    new = SessionKey(key.tenant, fork.id)
    check_not_spooled(api.spool, key)
    check_not_spooled(api.spool, new)
    attempt = await idempotent.attempt()
    if attempt is None:
        await _copy(api, key, new, fork)
    else:
        await _copy_once(api, key, new, replace(fork, at=attempt.at), attempt, idempotent)
    session = await existing_session(api.store, new)
    if attempt is not None:
        await idempotent.done(attempt)
    return session_object(session)


async def _copy_once(
    api: Api,
    key: SessionKey,
    new: SessionKey,
    fork: branches.Fork,
    attempt: Attempt,
    idempotent: IdempotentRequest,
) -> None:
    """Fork unless an earlier attempt did.

    Its fork is recognised by the time: all attempts fork at the time of the first.  A fork that is
    not recorded as done is made again, since it may be incomplete.
    """
    if attempt.done:
        if await _is_copied(api, new, fork):
            return
        raise idempotency_key_spent()
    try:
        await _copy(api, key, new, fork)
    except ProxyError:
        if not await _is_copied(api, new, fork):
            await idempotent.drop(attempt)
            raise


async def _is_copied(api: Api, new: SessionKey, fork: branches.Fork) -> bool:
    session = await api.store.session(new)
    return session is not None and session.created_at == fork.at


async def _copy(api: Api, key: SessionKey, new: SessionKey, fork: branches.Fork) -> None:
    try:
        await _copy_bounded(api, key, new, fork, MAX_HELD_BYTES)
    except TooLarge:
        async with api.large_fork:
            await _copy_large(api, key, new, fork)
    api.on_recorded(new)


async def _copy_large(api: Api, key: SessionKey, new: SessionKey, fork: branches.Fork) -> None:
    try:
        await _copy_bounded(api, key, new, fork, MAX_FORK_BYTES)
    except TooLarge:
        raise session_too_large() from None


async def _copy_bounded(
    api: Api, key: SessionKey, new: SessionKey, fork: branches.Fork, max_bytes: int
) -> None:
    """Raises TooLarge."""
    began = steady_now()
    archived = await read_session(api.store, key, max_bytes)
    if archived is None:
        raise session_not_found()
    try:
        copy = await asyncio.to_thread(fork_archive, archived, fork)
    except NoMessage:
        raise message_not_found() from None
    if not await api.store.restore(new, copy, began):
        raise await _refused(api, key, new)
    reading = api.learned.kinds.reading
    await copy_read_marks(api.store, reading, archived.session, copy.session, key.tenant)


async def _refused(api: Api, key: SessionKey, new: SessionKey) -> ProxyError:
    """The error for a fork that was not stored: the id is taken, or one of both was erased."""
    if await api.store.session(new) is not None:
        return session_exists()
    is_gone = await api.store.session(key) is None
    return session_not_found() if is_gone else memory_unavailable()


@operation(
    "POST",
    f"{SESSION}/rewind",
    TAG,
    examples={"turns": {"turns": 1}},
    errors=(message_not_found,),
    links=(Link("listMessages", BY_ID), Link("getSession", BY_ID)),
)
async def rewind_session(
    api: Api, key: SessionAt, back: RewindTurns | RewindTo, conditions: RequestConditions
) -> Session:
    """Take turns back.

    The messages stay in history as superseded. Give either `turns` or `to`.
    """
    check_not_spooled(api.spool, key)

    async def switch_for(session: archive.Session) -> Switch:
        lines = await lines_without_texts(api.store, key, session.end)
        return Switch(superseded=tuple(await asyncio.to_thread(_ids_to_rewind, lines, back)))

    return await _apply_switch(api, key, conditions, switch_for)


@operation("POST", f"{MESSAGE}/activate", MESSAGES)
async def activate_message(
    api: Api, key: SessionAt, message_id: MessageAt, conditions: RequestConditions
) -> Session:
    """Make a branch the active one.

    The branch that the message belongs to comes back; what stood in its place is superseded.
    `If-Match` takes the tag of the session.
    """
    check_not_spooled(api.spool, key)
    return await _apply_switch(
        api, key, conditions, partial(_switch, api, key, message_id=message_id)
    )


async def _apply_switch(
    api: Api,
    key: SessionKey,
    conditions: RequestConditions,
    switch_for: Callable[[archive.Session], Awaitable[Switch]],
) -> Session:
    """Apply the switch that ``switch_for`` returns for a session; returns the session.

    With conditions it is applied to the log that the caller has seen, or not at all.
    """
    for _ in range(ATTEMPTS):
        switch = await switch_for(await existing_session(api.store, key))
        # Read again: then the switch is of the log that is compared with the conditions.
        session = await existing_session(api.store, key)
        conditions.check(session_object(session))
        revision = Revision(
            superseded=switch.superseded,
            activated=switch.activated,
            log_size=session.log_size if conditions.has_any else None,
        )
        nothing = not (switch.superseded or switch.activated)
        if nothing or await revise(api, key, revision):
            return session_object(await existing_session(api.store, key))
    raise memory_unavailable()


def _ids_to_rewind(lines: Sequence[StoredMessage], back: RewindTurns | RewindTo) -> list[str]:
    active = [Entry(line.position, line.card) for line in lines if line.state == "active"]
    log = sorted(active, key=lambda entry: entry.position)
    if isinstance(back, RewindTurns):
        return [entry.card.id for entry in last_turns(log, back.turns)]
    ids = ids_from(log, back.to)
    if ids is not None:
        return ids
    if not any(line.card.id == back.to for line in lines):
        raise message_not_found()
    raise invalid("to is superseded already: name an active message.", "to")


async def _switch(
    api: Api, key: SessionKey, session: archive.Session, *, message_id: str
) -> Switch:
    lines = await lines_without_texts(api.store, key, session.end)
    exchanges = await exchanges_oldest_first(api.store, key, session.end)
    switch = await asyncio.to_thread(switch_to, lines, exchanges, message_id)
    if switch is None:
        raise message_not_found()
    return switch
