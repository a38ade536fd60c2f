"""Sessions that go on from another one, or back in themselves.

Nothing leaves history by this: messages are superseded, and can be made active again.
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
    HELD,
    TooLarge,
    lines_without_texts,
    oldest_first,
    read_session,
)
from proxy.memory.model import Entry, SessionKey
from proxy.memory.reconciliation.match import last_turns
from proxy.memory_api.api import Api
from proxy.memory_api.call import IdempotentCall, RequestConditions
from proxy.memory_api.conversations.message_edit import ATTEMPTS, revise
from proxy.memory_api.conversations.message_edit import ONE as MESSAGE
from proxy.memory_api.conversations.message_edit import TAG as MESSAGES
from proxy.memory_api.conversations.sessions import BY_ID, SESSION, TAG, must_not_wait, the_session
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

FORKED = 256_000_000
"""Bytes of messages up to which a session may be forked at all."""


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
async def fork_session(api: Api, at: SessionAt, wanted: Fork, once: IdempotentCall) -> Session:
    """Go on from a session in a new one.

    The new session has everything up to and including `until`, and the same user.
    """
    # What waits in the spool belongs to it, so nothing is forked before that has arrived: 503.
    fork = branches.Fork(wanted.id, time.time(), wanted.until, wanted.title)
    new = SessionKey(at.tenant, fork.id)
    must_not_wait(api.spool, at)
    must_not_wait(api.spool, new)
    attempt = await once.attempt()
    if attempt is None:
        await _make(api, at, new, fork)
    else:
        await _make_once(api, at, new, replace(fork, at=attempt.at), attempt, once)
    found = await the_session(api.store, new)
    if attempt is not None:
        await once.done(attempt)
    return session_object(found)


async def _make_once(
    api: Api,
    at: SessionKey,
    new: SessionKey,
    fork: branches.Fork,
    attempt: Attempt,
    once: IdempotentRequest,
) -> None:
    """What an earlier attempt has made stays as it is by now.

    It is known by its time: all attempts fork at the time of the first.  One that is not known to
    be done is made once more, as it may have been cut short at the end.
    """
    if attempt.done:
        if await _is_there(api, new, fork):
            return
        raise idempotency_key_spent()
    try:
        await _make(api, at, new, fork)
    except ProxyError:
        if not await _is_there(api, new, fork):
            await once.dropped(attempt)
            raise


async def _is_there(api: Api, new: SessionKey, fork: branches.Fork) -> bool:
    found = await api.store.session(new)
    return found is not None and found.created_at == fork.at


async def _make(api: Api, at: SessionKey, new: SessionKey, fork: branches.Fork) -> None:
    try:
        await _copied(api, at, new, fork, HELD)
    except TooLarge:
        async with api.large_fork:
            await _copied_large(api, at, new, fork)
    api.on_recorded(new)


async def _copied_large(api: Api, at: SessionKey, new: SessionKey, fork: branches.Fork) -> None:
    try:
        await _copied(api, at, new, fork, FORKED)
    except TooLarge:
        raise session_too_large() from None


async def _copied(
    api: Api, at: SessionKey, new: SessionKey, fork: branches.Fork, most: int
) -> None:
    """Raises TooLarge."""
    began = steady_now()
    archived = await read_session(api.store, at, most)
    if archived is None:
        raise session_not_found()
    try:
        copy = await asyncio.to_thread(fork_archive, archived, fork)
    except NoMessage:
        raise message_not_found() from None
    if not await api.store.restore(new, copy, began):
        raise await _refused(api, at, new)
    reading = api.learned.kinds.reading
    await copy_read_marks(api.items, reading, archived.session, copy.session, at.tenant)


async def _refused(api: Api, at: SessionKey, new: SessionKey) -> ProxyError:
    """There is one already, or something is erased: what is copied, or what had its name."""
    if await api.store.session(new) is not None:
        return session_exists()
    gone = await api.store.session(at) is None
    return session_not_found() if gone else memory_unavailable()


@operation(
    "POST",
    f"{SESSION}/rewind",
    TAG,
    examples={"turns": {"turns": 1}},
    errors=(message_not_found,),
    links=(Link("listMessages", BY_ID), Link("getSession", BY_ID)),
)
async def rewind_session(
    api: Api, at: SessionAt, back: RewindTurns | RewindTo, given: RequestConditions
) -> Session:
    """Take turns back.

    The messages stay in history as superseded. Give either `turns` or `to`.
    """
    must_not_wait(api.spool, at)

    async def wanted(session: archive.Session) -> Switch:
        lines = await lines_without_texts(api.store, at, session.end)
        return Switch(superseded=tuple(await asyncio.to_thread(_ids_taken_back, lines, back)))

    return await _switched(api, at, given, wanted)


@operation("POST", f"{MESSAGE}/activate", MESSAGES)
async def activate_message(
    api: Api, at: SessionAt, wanted: MessageAt, given: RequestConditions
) -> Session:
    """Make a branch the active one.

    The branch that the message belongs to comes back; what stood in its place is superseded.
    `If-Match` takes the tag of the session.
    """
    must_not_wait(api.spool, at)
    return await _switched(api, at, given, partial(_switch, api, at, wanted=wanted))


async def _switched(
    api: Api,
    at: SessionKey,
    given: RequestConditions,
    wanted: Callable[[archive.Session], Awaitable[Switch]],
) -> Session:
    """The session with what is ``wanted`` of it switched.

    A change with conditions is made in the log that the caller has seen, or not at all.
    """
    for _ in range(ATTEMPTS):
        switch = await wanted(await the_session(api.store, at))
        # Behind it: then what is switched is what the caller has seen.
        session = await the_session(api.store, at)
        given.check(session_object(session))
        revision = Revision(
            superseded=switch.superseded,
            activated=switch.activated,
            log_size=session.log_size if given.any else None,
        )
        nothing = not (switch.superseded or switch.activated)
        if nothing or await revise(api, at, revision):
            return session_object(await the_session(api.store, at))
    raise memory_unavailable()


def _ids_taken_back(lines: Sequence[StoredMessage], back: RewindTurns | RewindTo) -> list[str]:
    active = [Entry(line.position, line.card) for line in lines if line.state == "active"]
    log = sorted(active, key=lambda entry: entry.position)
    if isinstance(back, RewindTurns):
        return [entry.card.id for entry in last_turns(log, back.turns)]
    found = ids_from(log, back.to)
    if found is not None:
        return found
    if not any(line.card.id == back.to for line in lines):
        raise message_not_found()
    raise invalid("to is superseded already: name an active message.", "to")


async def _switch(api: Api, at: SessionKey, session: archive.Session, *, wanted: str) -> Switch:
    lines = await lines_without_texts(api.store, at, session.end)
    exchanges = await oldest_first(api.store, at, session.end)
    found = await asyncio.to_thread(switch_to, lines, exchanges, wanted)
    if found is None:
        raise message_not_found()
    return found
