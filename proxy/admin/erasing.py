"""Erasing over the memory API, with a receipt."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from proxy.admin import asking
from proxy.admin.access import Access
from proxy.admin.asking import invalid
from proxy.admin.audit import who
from proxy.admin.conditions import is_conditional, must_match
from proxy.admin.eraser import Eraser
from proxy.admin.objects import Object, reply, session_object
from proxy.admin.parts import AdminParts
from proxy.admin.people import People
from proxy.admin.receipt import Receipt
from proxy.errors import memory_unavailable, session_not_found
from proxy.learning.forgetting import Busy
from proxy.logs import audit, hashed
from proxy.memory.clock import steady
from proxy.memory.erasure import MARKED_SECONDS
from proxy.memory.model import SessionKey
from proxy.recall.index import Owner

MEMORIES = ("fact", "profile", "episode")
"""Kinds of what was learned."""


class Erasing:
    """DELETE of ``/sessions/{id}`` and ``/users/{id}``; ``?dry_run=true`` only counts."""

    def __init__(self, parts: AdminParts, access: Access, people: People) -> None:
        self._store, self._access, self._people = parts.store, access, people
        self._eraser = Eraser(parts.store, parts.spool, parts.learned, steady)

    async def session(self, request: Request) -> Response:
        """Remove a session with all that it owns, for good."""
        key, dry_run = self._access.key(request), _dry_run(request)
        session = await self._store.session(key)
        must_match(request, session_object(session) if session else None)
        receipt = await self._session(key, dry_run)
        if receipt is None:
            raise session_not_found()
        _audit(request, receipt)
        told = {"object": "session.deleted", "id": key.session, "deleted": not dry_run}
        return reply({**receipt_object(receipt), **told})

    async def _session(self, key: SessionKey, dry_run: bool) -> Receipt | None:
        if dry_run:
            return await self._eraser.count_session(key)
        try:
            return await self._eraser.session(key)
        except Busy:
            raise memory_unavailable() from None

    async def user(self, request: Request) -> Response:
        """Remove everything of a person, for good; of nobody known that is nothing."""
        tenant, user = self._access.tenant(request), asking.user_in_path(request)
        dry_run = _dry_run(request)
        if is_conditional(request):
            must_match(request, await self._people.one(Owner(tenant, user=user)))
        try:
            receipt = await (
                self._eraser.count_person(tenant, user)
                if dry_run
                else self._eraser.person(tenant, user)
            )
        except Busy:
            raise memory_unavailable() from None
        _audit(request, receipt)
        return reply(receipt_object(receipt))


def _audit(request: Request, receipt: Receipt) -> None:
    if receipt.erased_at is None:
        return  # only counted
    subject, counts = receipt.subject, receipt.counts
    what = "session" if subject.session else "user"
    audit(
        "erased",
        **who(request),
        **{what: hashed(subject.session or subject.user or "")},
        sessions=counts.sessions,
        messages=counts.messages,
        memories=counts.memories.total(),
        items=counts.items,
    )


def _dry_run(request: Request) -> bool:
    """``?dry_run=``, false by default."""
    said = request.query_params.get("dry_run", "false")
    if said not in ("true", "false"):
        raise invalid("dry_run must be true or false.", "dry_run")
    return said == "true"


def receipt_object(receipt: Receipt) -> Object:
    """``marked_until``: what began before ``erased_at`` is refused until then at least."""
    subject, counts, at = receipt.subject, receipt.counts, receipt.erased_at
    named = {"session_id": subject.session} if subject.session else {"user_id": subject.user}
    return {
        "object": "erasure",
        **named,
        "dry_run": at is None,
        "erased_at": at,
        "counts": {
            "sessions": counts.sessions,
            "messages": counts.messages,
            "exchanges": counts.exchanges,
            "summaries": counts.summaries,
            "memories": {kind: counts.memories[kind] for kind in MEMORIES},
            "items": counts.items,
            "feedback": counts.feedback,
            "proposals": counts.proposals,
            "index_passages": counts.index_passages,
            "spooled": counts.spooled,
        },
        "marked_until": at + MARKED_SECONDS if at is not None else None,
    }
