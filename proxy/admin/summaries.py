"""A session's summary: every version to be read, a person's own words in its place, made anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.imports import UNREADABLE, fields_of
from proxy.admin.messages import NEWEST_TURN
from proxy.admin.objects import listed, reply, session_object, summary_version
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait
from proxy.errors import ProxyError, memory_unavailable, session_not_found
from proxy.memory.model import SessionKey
from proxy.memory.summary import Summary
from proxy.memory.work import Due
from proxy.settings import ProfileSettings, Settings

CHANGEABLE = ("summary",)
"""Fields of a session that can be changed."""

ATTEMPTS = 10
"""How often an edit is tried again that another version has overtaken."""


class Summaries:
    """``/sessions/{id}`` (PATCH), ``/sessions/{id}/summaries``, ``…/summary/rebuild``."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._most = _most_tokens(parts.settings)

    async def change(self, request: Request) -> Response:
        """Put other words in the summary's place, or with null forget all versions."""
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        text = await asyncio.to_thread(self._text, body)
        must_not_wait(self._parts.spool, key)
        if text is None:
            await self._store.drop_summaries(key)
        else:
            await self._edit(key, text)
        return await self._session(key)

    async def listing(self, request: Request) -> Response:
        """The versions, newest first; the first is in force."""
        key = self._access.key(request)
        limit, after = asking.limit(request), asking.after_seq(request)
        versions = [s for s in await self._store.summaries(key) if not after or s.version < after]
        if not versions and await self._store.session(key) is None:
            raise session_not_found()
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
        return await self._session(key, 202)

    async def _session(self, key: SessionKey, status: int = 200) -> Response:
        session = await self._store.session(key)
        if session is None:
            raise session_not_found()
        return reply(session_object(session), status)

    def _text(self, body: bytes) -> str | None:
        """The new summary, None to forget it.  Raises ProxyError 400."""
        fields = fields_of(self._parts.fields, body)
        _only(fields, CHANGEABLE, "")
        if fields["summary"].strip() == b"null":
            return None
        inner = _object(self._parts, fields["summary"])
        _only(inner, ("text",), "summary.")
        text = asking.text_field(inner, "text")
        if text is None or not text.strip() or self._parts.count_text(text) > self._most:
            message = f"summary.text must have 1 to {self._most} tokens; null forgets the summary."
            raise invalid(message, "summary.text")
        return text

    async def _edit(self, key: SessionKey, text: str) -> None:
        """A version of the same coverage; without one before it, of none."""
        for _ in range(ATTEMPTS):
            base = next(iter(await self._store.summaries(key)), Summary(text="", version=0))
            edited = msgspec.structs.replace(
                base,
                text=text,
                tokens=self._parts.count_text(text),
                edited=True,
                model=None,
                created_at=time.time(),
            )
            if await self._store.put_summary(key, edited, base.version, None):
                return
            if await self._store.session(key) is None:
                raise session_not_found()
        raise memory_unavailable()


def _most_tokens(settings: Settings) -> int:
    """The longest summary that any profile allows."""
    profiles: tuple[ProfileSettings, ...] = (settings.memory, *settings.profiles.values())
    return max(profile.summary.max_tokens for profile in profiles)


def _only(fields: Mapping[str, bytes], known: tuple[str, ...], above: str) -> None:
    """Raise ProxyError 400 unless there are fields, and none but these."""
    others = [name for name in fields if name not in known]
    if others or not fields:
        names = ", ".join(above + name for name in known)
        param = above + others[0] if others else names
        raise invalid(f"What can be changed is: {names}.", param)


def _object(parts: AdminParts, raw: bytes) -> dict[str, bytes]:
    try:
        return parts.fields(raw)
    except UNREADABLE:
        raise invalid('summary must be {"text": "..."} or null.', "summary") from None


def _not_enabled() -> ProxyError:
    message = "The profile of this session has no summaries. Enable them in [memory.summary]."
    return ProxyError(400, "summary_disabled", message)
