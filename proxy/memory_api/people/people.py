"""The people of a tenant: list them, get them, and forget what a session taught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Annotated

from msgspec.structs import replace

from proxy.memory.archive import Session
from proxy.memory.items import ItemOwner
from proxy.memory_api.api import Api
from proxy.memory_api.call import Tenant
from proxy.memory_api.conversations.sessions import SESSION, check_not_spooled, existing_session
from proxy.memory_api.conversations.sessions import TAG as SESSIONS
from proxy.memory_api.errors import user_not_found
from proxy.memory_api.fields import decode_cursor, encode_cursor, unknown_cursor
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.overview.counts import item_counts
from proxy.memory_api.parameters import OF_USER, After, Limit, PersonAt, SessionAt
from proxy.memory_api.people.memories import as_item_owner
from proxy.memory_api.shapes.people import STANDING_KINDS, Person, User, UserList
from proxy.memory_api.shapes.sessions import Forget, ForgetReceipt, Forgotten
from proxy.recall.index import Owner, newest_session, sessions_of

MAX_SESSIONS = 5000
"""Sessions that are read for one page of the list, those that are only counted included."""

MAX_PAGES = 50
"""Calls to the store for one page."""

MAX_PAGE = 500
"""The most sessions of one call, whose size doubles while no new person is found."""


TAG = "Users"
ALL = "/memory/v1/users"
ONE = f"{ALL}/{{user}}"
BY_PATH = {"user": "$request.path.user"}
FIRST = {"user": "$response.body#/data/0/id"}


@operation("GET", ALL, TAG, links=(Link("getUser", FIRST), Link("listMemories", FIRST)))
async def list_users(api: Api, tenant: Tenant, limit: Limit, after: After) -> UserList:
    """List people.

    Newest activity first: who becomes active between two parts moves to the front, and the parts
    that follow do not have them. A part may be short though there are more: follow `next`.
    """
    try:
        start = decode_cursor(after) if after is not None else None
        people, end = await _page(api, tenant, start, limit)
    except ValueError:
        raise unknown_cursor() from None
    return UserList.part(people, encode_cursor(end) if end is not None else None)


@operation(
    "GET",
    ONE,
    TAG,
    errors=(user_not_found,),
    links=(Link("listMemories", {"user": "$response.body#/id"}),),
)
async def get_user(api: Api, owner: PersonAt) -> User:
    """Get a person in numbers."""
    person = await person_of(api, owner)
    if person is None:
        raise user_not_found()
    return person


async def person_of(api: Api, owner: Owner) -> User | None:
    """A person's figures; None if nothing is known of them."""
    sessions = [session async for session in sessions_of(api.store, owner.tenant, owner.user)]
    memories = await _memories(api, owner)
    if not sessions and not any(memories.values()):
        return None
    return User(
        id=owner.user,
        sessions=len(sessions),
        messages=sum(session.messages for session in sessions),
        tokens=sum(session.tokens for session in sessions),
        first_active_at=min((session.created_at for session in sessions), default=None),
        last_active_at=max((session.last_active_at for session in sessions), default=None),
        memories=memories,
    )


async def _page(
    api: Api, tenant: str, after: str | None, limit: int
) -> tuple[list[Person], str | None]:
    """People after a cursor of the sessions, and the next cursor.

    A person is listed at the place of their newest session, so nobody is listed twice.
    """
    people: list[Person] = []
    seen: set[str] = set()
    looked_at = at_once = 0
    for _ in range(MAX_PAGES):
        room = limit - len(people)
        at_once = max(at_once, room)
        page = await api.store.sessions(tenant, None, after, at_once)
        while (size := _count_within(page.items, seen, room)) < len(page.items):
            page = await api.store.sessions(tenant, None, after, size)
        looked_at, after = looked_at + len(page.items), page.after
        fresh = _firsts(page.items, seen)
        seen.update(fresh)
        for user, session in fresh.items():
            person = await _person(api, tenant, user, session)
            looked_at += 1 if person is None else person.sessions
            people += [person] if person is not None else []
        at_once = 0 if fresh else min(2 * at_once, MAX_PAGE)
        if after is None or 2 * len(people) > limit or looked_at >= MAX_SESSIONS:
            break
    return people, after


def _firsts(sessions: Sequence[Session], seen: Collection[str]) -> dict[str, Session]:
    """The people of these sessions who were not seen yet, each with their first session."""
    firsts: dict[str, Session] = {}
    for session in sessions:
        if session.user is not None and session.user not in seen:
            firsts.setdefault(session.user, session)
    return firsts


def _count_within(sessions: Sequence[Session], seen: Collection[str], room: int) -> int:
    """How many sessions come before the first person who exceeds ``room``."""
    firsts = list(_firsts(sessions, seen).values())
    return sessions.index(firsts[room]) if len(firsts) > room else len(sessions)


async def _person(api: Api, tenant: str, user: str, session: Session) -> Person | None:
    """The person, None if this is not their newest session: then they were listed before."""
    newest = await newest_session(api.store, tenant, user)
    if newest is None or newest.id != session.id:
        return None
    count = len([each.id async for each in sessions_of(api.store, tenant, user)])
    return Person(id=user, sessions=count, last_active_at=session.last_active_at)


async def _memories(api: Api, owner: Owner) -> dict[str, int]:
    """The number of memories by kind, in any state; of standing instructions those in force."""
    counts = await item_counts(api.store, as_item_owner(owner), api.learned.kinds)
    standing = Counter[str](each.kind for each in await api.recall_admin.standing(owner))
    return {
        **{kind.memory: counts.memories[kind.memory] for kind in api.learned.kinds.personal},
        **{kind: standing[kind] for kind in STANDING_KINDS},
        "item": counts.items,
    }


UserOfSession = Annotated[
    str | None,
    replace(OF_USER, description="Whose memory it is, where the session is gone.", example=None),
]


@operation("POST", f"{SESSION}/forget", SESSIONS, examples={"look": {"dry_run": True}})
async def forget_learned(
    api: Api, key: SessionAt, user_named: UserOfSession, request: Forget | None
) -> ForgetReceipt:
    """Forget what a session taught.

    History stays; what others taught as well stays without this source.
    """
    request = request or Forget()
    # What waits in the spool would be learned later: nothing is forgotten before it has arrived.
    check_not_spooled(api.spool, key)
    user = (
        user_named
        if user_named is not None
        else (await existing_session(api.store, key)).user or ""
    )
    forgotten = await api.learned.forgetting.forget(
        ItemOwner(key.tenant, user), key.session, request.exchange_id, request.dry_run
    )
    return ForgetReceipt(
        session_id=key.session,
        exchange_id=request.exchange_id,
        dry_run=request.dry_run,
        data=[
            Forgotten(id=each.id, kind=each.kind, action=each.action, text=each.text)
            for each in forgotten
        ],
    )
