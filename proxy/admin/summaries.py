"""A session's summary: every version to be read, and made anew."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.objects import listed, reply, session_object, summary_version
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import ProxyError, session_not_found
from proxy.memory.reading import NEWEST_TURN
from proxy.memory.work import Due


class Summaries:
    """``/sessions/{id}/summaries`` and ``/sessions/{id}/summary/rebuild``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access

    async def listing(self, request: Request) -> Response:
        """The versions, newest first; the first is in force."""
        key = self._access.key(request)
        limit, after = asking.limit(request), asking.after_seq(request)
        versions = [s for s in await self._store.summaries(key) if not after or s.version < after]
        if not versions:
            await the_session(self._store, key)
        page = versions[:limit]
        cursor = str(page[-1].version) if len(versions) > limit else None
        return reply(listed([summary_version(summary) for summary in page], cursor))

    async def rebuild(self, request: Request) -> Response:
        """Forget all versions and have the summary made anew, from the history."""
        key = self._access.key(request)
        must_not_wait(self._parts.spool, key)
        snapshot = await self._store.load(key, NEWEST_TURN)
        name = snapshot.last.profile if snapshot.last else ""
        profile = self._parts.settings.profile(name or None)
        if not snapshot.exists:
            raise session_not_found()
        if profile is None or not profile.summary.enabled:
            raise _not_enabled()
        await self._store.drop_summaries(key)
        await self._store.enqueue(key, Due(kind="summary", profile=name, at=time.time()))
        return reply(session_object(await the_session(self._store, key)), 202)


def _not_enabled() -> ProxyError:
    message = "The profile of this session has no summaries. Enable them in [memory.summary]."
    return ProxyError(400, "summary_disabled", message)
