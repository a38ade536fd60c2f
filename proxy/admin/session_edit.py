"""Changing a session by hand: title, metadata, lifetime, system messages, summary."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.conditions import must_match
from proxy.admin.imports import SYSTEM_ROLES, UNREADABLE, fields_of, system_of
from proxy.admin.message_check import check_message
from proxy.admin.objects import reply, session_object
from proxy.admin.parts import AdminParts
from proxy.admin.sessions import must_not_wait, the_session
from proxy.errors import memory_unavailable
from proxy.memory.archive import Details, Revision, Session
from proxy.memory.model import SessionKey
from proxy.memory.summary import Summary
from proxy.settings import ProfileSettings, Settings

CHANGEABLE = ("title", "metadata", "ttl", "system", "summary")
"""Fields of a session that can be changed."""

LONGEST_TITLE = 200
"""Characters."""

LARGEST_METADATA = 16 * 1024
"""Bytes of JSON."""

LONGEST_TTL = 100 * 366 * 86_400
"""Seconds; no back end can count much further."""

ATTEMPTS = 10
"""How often an edit is tried again that another has overtaken."""

Fields = Mapping[str, bytes]
Change = Callable[[Details], Details]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a change asks for: ``details``, and, if so, another ``summary``, None to forget it."""

    details: tuple[Change, ...]
    resummarise: bool = False
    summary: str | None = None


class SessionEdit:
    """``/sessions/{id}`` (PATCH)."""

    def __init__(self, parts: AdminParts, access: Access) -> None:
        self._parts, self._store, self._access = parts, parts.store, access
        self._most = _most_tokens(parts.settings)

    async def change(self, request: Request) -> Response:
        """Make all changes, or, where one cannot be made, none.

        The summary is kept apart from the rest: if the store fails between the two writes, the
        answer is an error and the rest is changed already.
        """
        key = self._access.key(request)
        body = await asking.body_of(request, self._parts.settings.server)
        wanted = await asyncio.to_thread(self._wanted, body)
        must_not_wait(self._parts.spool, key)
        told = not wanted.resummarise
        for _ in range(ATTEMPTS):
            session = await the_session(self._store, key)
            if not (wanted.resummarise and told):  # else it has changed already, by this
                must_match(request, session_object(session))
            told = told or await self._tell(key, session, wanted.summary)
            if told and await self._describe(key, session, wanted.details):
                return reply(session_object(await the_session(self._store, key)))
        raise memory_unavailable()

    async def _describe(self, key: SessionKey, session: Session, wanted: Iterable[Change]) -> bool:
        """False if they are not as they were read any more."""
        was = details = session.details
        for change in wanted:
            details = change(details)
        if details == was:
            return True
        return await self._store.revise(key, Revision(details=details, was=was))

    async def _tell(self, key: SessionKey, session: Session, text: str | None) -> bool:
        """Put other words in the summary's place, of the same coverage; or forget all versions.

        False if another version has come between.
        """
        if text is None:
            await self._store.drop_summaries(key)
            return True
        base = session.summary or Summary(text="", version=0)
        edited = msgspec.structs.replace(
            base,
            text=text,
            tokens=self._parts.count_text(text),
            edited=True,
            model=None,
            created_at=time.time(),
        )
        return await self._store.put_summary(key, edited, base.version, None)

    def _wanted(self, body: bytes) -> Wanted:
        """Raises ProxyError 400."""
        fields = fields_of(self._parts.fields, body)
        _only(fields, CHANGEABLE, "")
        read: dict[str, Callable[[Fields], Change]] = {
            "title": _title,
            "metadata": self._metadata,
            "ttl": _ttl,
            "system": self._system,
        }
        details = tuple(reads(fields) for name, reads in read.items() if name in fields)
        if "summary" not in fields:
            return Wanted(details)
        return Wanted(details, True, self._summary(fields["summary"]))

    def _metadata(self, fields: Fields) -> Change:
        raw = fields["metadata"].strip()
        try:
            value = self._parts.decode(raw)
        except UNREADABLE:
            value = None
        if not isinstance(value, dict) or len(raw) > LARGEST_METADATA:
            message = f"metadata must be a JSON object of at most {LARGEST_METADATA} bytes."
            raise invalid(message, "metadata")
        return lambda details: replace(details, metadata=raw)

    def _system(self, fields: Fields) -> Change:
        """One message, a list of them, or null: nothing is remembered."""
        raw = fields["system"].strip()
        try:
            pieces = self._parts.items(raw) if raw.startswith(b"[") else [raw]
        except UNREADABLE:
            pieces = []
        if raw == b"null":
            return lambda details: replace(details, system=None, system_tokens=0)
        if not pieces or not all(map(self._is_system, pieces)):
            raise invalid("system must be system or developer messages, or null.", "system")
        for number, piece in enumerate(pieces):
            check_message(piece, f"system[{number}]" if raw.startswith(b"[") else "system")
        kept = [self._record(piece) for piece in pieces]
        system, tokens = system_of(kept), sum(map(self._parts.counter(None), kept))
        return lambda details: replace(details, system=system, system_tokens=tokens)

    def _record(self, piece: bytes) -> bytes:
        said = self._parts.read_message(piece, len(piece))
        return said.record if said else piece

    def _is_system(self, piece: bytes) -> bool:
        said = self._parts.read_message(piece, len(piece))
        return said is not None and said.role in SYSTEM_ROLES and not said.blank

    def _summary(self, raw: bytes) -> str | None:
        """The new text, None to forget it."""
        if raw.strip() == b"null":
            return None
        try:
            inner = self._parts.fields(raw)
        except UNREADABLE:
            raise invalid('summary must be {"text": "..."} or null.', "summary") from None
        _only(inner, ("text",), "summary.")
        text = asking.text_field(inner, "text")
        if text is None or not text.strip() or self._parts.count_text(text) > self._most:
            message = f"summary.text must have 1 to {self._most} tokens; null forgets the summary."
            raise invalid(message, "summary.text")
        return text


def title_in(fields: Fields) -> str | None:
    """A title, None where it is absent or null.  Raises ProxyError 400."""
    title = asking.text_field(dict(fields), "title")
    if title is not None and not 1 <= len(title) <= LONGEST_TITLE:
        message = f"title must have 1 to {LONGEST_TITLE} characters; null removes it."
        raise invalid(message, "title")
    return title


def _title(fields: Fields) -> Change:
    title = title_in(fields)
    return lambda details: replace(details, title=title)


def _ttl(fields: Fields) -> Change:
    try:
        ttl = asking.whole(fields["ttl"])
    except UNREADABLE:
        ttl = -1
    if not 0 <= ttl <= LONGEST_TTL:
        raise invalid(f"ttl must be seconds from 0, for ever, to {LONGEST_TTL}.", "ttl")
    return lambda details: replace(details, ttl=ttl)


def _most_tokens(settings: Settings) -> int:
    """The longest summary that any profile allows."""
    profiles: tuple[ProfileSettings, ...] = (settings.memory, *settings.profiles.values())
    return max(profile.summary.max_tokens for profile in profiles)


def _only(fields: Fields, known: tuple[str, ...], above: str) -> None:
    """Raise ProxyError 400 unless there are fields, and none but these."""
    others = [name for name in fields if name not in known]
    if others or not fields:
        names = ", ".join(above + name for name in known)
        param = above + others[0] if others else names
        raise invalid(f"What can be changed is: {names}.", param)
