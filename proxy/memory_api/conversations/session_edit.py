"""Changing a session by hand: title, metadata, lifetime, system messages, and its summaries."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from proxy.chat.jsontext import UNREADABLE, items, join_items
from proxy.chat.message import SYSTEM_ROLES, read_message
from proxy.errors import memory_unavailable, session_not_found
from proxy.memory import archive
from proxy.memory.archive import Revision
from proxy.memory.history.reading import NEWEST_TURN
from proxy.memory.model import Kind, SessionKey, Summary, WorkRequest
from proxy.memory_api.api import Api
from proxy.memory_api.call import RequestConditions
from proxy.memory_api.conversations.checking import check_message
from proxy.memory_api.conversations.message_edit import ATTEMPTS
from proxy.memory_api.conversations.sessions import (
    BY_ID,
    SESSION,
    TAG,
    check_not_spooled,
    existing_session,
)
from proxy.memory_api.errors import summary_disabled
from proxy.memory_api.fields import bytes_of, invalid
from proxy.memory_api.objects import session_object, summary_version
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import AfterSeq, Limit, SessionAt
from proxy.memory_api.shapes.sessions import (
    SYSTEM,
    Session,
    SessionChange,
    SummaryList,
    SummaryText,
)
from proxy.settings import ProfileSettings

MAX_TOKEN = 128
"""The most characters of a token in any table: longer texts need not be counted."""

Details = dict[str, Any]
"""New values of fields of a session's details."""


@operation(
    "PATCH",
    SESSION,
    TAG,
    examples={
        "title": {"title": "A weekend in Lisbon"},
        "metadata": {"metadata": {"channel": "web"}},
    },
    links=(Link("getSession", BY_ID),),
)
async def update_session(
    api: Api, key: SessionAt, change: SessionChange, conditions: RequestConditions
) -> Session:
    """Change a session.

    All changes are made, or, where one cannot be made, none.
    """
    # The summary is kept apart from the rest: if the store fails between the two writes, the
    # answer is an error and the rest is changed already.
    details = await api.editing.run_for(key.tenant, partial(_changed_details, api, change))
    check_not_spooled(api.spool, key)
    summary, summary_set = change.summary, False
    for _ in range(ATTEMPTS):
        session = await existing_session(api.store, key)
        if (
            not summary_set
        ):  # else it is not as the caller has read it any more, by this very change
            conditions.check(session_object(session))
            if summary is not UNSET:
                summary_set = await _set_summary(
                    api, key, session, summary.text if summary else None
                )
        if (summary_set or summary is UNSET) and await _set_details(api, key, session, details):
            return session_object(await existing_session(api.store, key))
    raise memory_unavailable()


async def _set_details(
    api: Api, key: SessionKey, session: archive.Session, details_changed: Details
) -> bool:
    """Change the details; False if they have changed since they were read."""
    current = session.details
    details = replace(current, **details_changed)
    if details == current:
        return True
    return await api.store.revise(key, Revision(details=details, expected_details=current))


async def _set_summary(
    api: Api, key: SessionKey, session: archive.Session, text: str | None
) -> bool:
    """Replace the summary's text, or with None delete all versions.

    False if another version was written meanwhile.
    """
    if text is None:
        await api.store.drop_summaries(key)
        return True
    base = session.summary or Summary(text="", version=0)
    edited = replace(
        base,
        text=text,
        tokens=api.count_text(text),
        edited=True,
        model=None,
        created_at=time.time(),
    )
    return await api.store.put_summary(key, edited, base.version, None, began=session.created_at)


def _changed_details(api: Api, change: SessionChange) -> Details:
    """Raises ProxyError 400."""
    details: Details = {}
    if change.title is not UNSET:
        details["title"] = change.title
    if change.metadata is not UNSET:
        details["metadata"] = bytes(change.metadata).strip()
    if change.ttl is not UNSET:
        details["ttl"] = change.ttl
    if change.system is not UNSET:
        details |= _system(api, bytes_of(change.system).strip())
    if isinstance(change.summary, SummaryText):
        _check_summary_length(api, change.summary.text)
    return details


def _system(api: Api, raw: bytes) -> Details:
    """Details for one system message, a list of them, or null for none."""
    if raw == b"null":
        return {"system": None, "system_tokens": 0}
    is_list = raw.startswith(b"[")
    try:
        pieces = items(raw) if is_list else [raw]
    except UNREADABLE:
        pieces = []
    messages = [message for each in pieces if (message := read_message(each, len(each)))]
    is_system = (each.role in SYSTEM_ROLES and not each.blank for each in messages)
    if not messages or len(messages) < len(pieces) or not all(is_system):
        raise invalid(f"system {SYSTEM}", "system")
    for number, piece in enumerate(pieces):
        check_message(piece, f"system[{number}]" if is_list else "system")
    records = [message.record for message in messages]
    return {"system": join_items(records), "system_tokens": sum(map(api.counter(None), records))}


def _check_summary_length(api: Api, text: str) -> None:
    """Raise ProxyError 400 for a summary longer than any profile allows."""
    settings = api.settings
    profiles: tuple[ProfileSettings, ...] = (settings.memory, *settings.profiles.values())
    max_tokens = max(profile.summary.max_tokens for profile in profiles)
    if not text.strip() or len(text) > MAX_TOKEN * max_tokens or api.count_text(text) > max_tokens:
        message = f"summary.text must have 1 to {max_tokens} tokens; null forgets the summary."
        raise invalid(message, "summary.text")


@operation("GET", f"{SESSION}/summaries", TAG)
async def list_summaries(api: Api, key: SessionAt, limit: Limit, after: AfterSeq) -> SummaryList:
    """List the versions of a summary.

    The newest first: it is in force.
    """
    versions = [s for s in await api.store.summaries(key) if not after or s.version < after]
    if not versions:
        await existing_session(api.store, key)
    page = versions[:limit]
    cursor = str(page[-1].version) if len(versions) > limit else None
    return SummaryList.part([summary_version(summary) for summary in page], cursor)


@operation("POST", f"{SESSION}/summary/rebuild", TAG, status=202, errors=(summary_disabled,))
async def rebuild_summary(api: Api, key: SessionAt) -> Session:
    """Make the summary anew.

    A version is written from the history soon; the one in force stays until then.
    """
    check_not_spooled(api.spool, key)
    snapshot = await api.store.load(key, NEWEST_TURN)
    name = snapshot.last.profile if snapshot.last else ""
    profile = api.settings.profile(name)
    if not snapshot.exists:
        raise session_not_found()
    if profile is None or not profile.summary.enabled:
        raise summary_disabled()
    kind: Kind = "rebuild"
    if snapshot.summary is None:
        kind = "summary"
        await api.store.drop_summaries(key)  # so that what has failed is tried again
    await api.store.enqueue(key, WorkRequest(kind=kind, profile=name, due_at=time.time()))
    return session_object(await existing_session(api.store, key))
