"""Erasing over the memory API, with a receipt."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from starlette.requests import Request

from proxy.errors import session_not_found
from proxy.learning.kinds import Kinds
from proxy.logs import audit, hashed
from proxy.memory.erasure import MARKED_SECONDS
from proxy.memory_api.access import who
from proxy.memory_api.api import Api
from proxy.memory_api.call import Asked, Given
from proxy.memory_api.endpoint import presence
from proxy.memory_api.erasure.receipt import Receipt
from proxy.memory_api.objects import session_object
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import DryRun, PersonAt, SessionAt
from proxy.memory_api.people.people import person_of
from proxy.memory_api.shapes.sessions import Counts, Erasure, SessionErasure


@operation("DELETE", "/memory/v1/sessions/{session}", "Sessions")
async def delete_session(
    api: Api, at: SessionAt, dry_run: DryRun, given: Given, request: Asked
) -> SessionErasure:
    """Erase a session.

    With all that it owns, for good, and with what is written meanwhile: conditions are compared
    when it begins. Where there is none, what an erasure that was cut off has left of it is removed
    before the 404. `dry_run=true` only counts.
    """
    session = await api.store.session(at)
    given.hold_for(session_object(session) if session else None)
    erase = api.eraser.count_session if dry_run else api.eraser.session
    with _watched(request, dry_run):
        receipt = await erase(at)
    if receipt is None:
        raise session_not_found()
    _audit(request, receipt)
    return SessionErasure(
        session_id=at.session,
        **_told(receipt, api.learned.kinds),
        id=at.session,
        deleted=not dry_run,
    )


@operation("DELETE", "/memory/v1/users/{user}", "Users")
async def delete_user(
    api: Api, owner: PersonAt, dry_run: DryRun, given: Given, request: Asked
) -> Erasure:
    """Erase a person.

    Everything, for good, with a receipt, and what is written meanwhile as well: conditions are
    compared when it begins. Of nobody known that is nothing, and no error. `dry_run=true` only
    counts.
    """
    if given.any:
        given.hold_for(await person_of(api, owner))
    erase = api.eraser.count_person if dry_run else api.eraser.person
    user = owner.user or ""
    with _watched(request, dry_run):
        receipt = await erase(owner.tenant, user)
    _audit(request, receipt)
    return Erasure(user_id=user, **_told(receipt, api.learned.kinds))


def _watched(request: Request, dry_run: bool) -> AbstractContextManager[None]:
    """What only counts ends when its client leaves; an erasure goes on."""
    return presence(request) if dry_run else nullcontext()


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


def _told(receipt: Receipt, kinds: Kinds) -> dict[str, Any]:
    """``marked_until``: what began before ``erased_at`` is refused until then at least."""
    counts, at = receipt.counts, receipt.erased_at
    return {
        "dry_run": at is None,
        "erased_at": at,
        "counts": Counts(
            sessions=counts.sessions,
            messages=counts.messages,
            exchanges=counts.exchanges,
            summaries=counts.summaries,
            memories={kind.memory: counts.memories[kind.memory] for kind in kinds.personal},
            items=counts.items,
            feedback=counts.feedback,
            proposals=counts.proposals,
            index_passages=counts.index_passages,
            spooled=counts.spooled,
        ),
        "marked_until": at + MARKED_SECONDS if at is not None else None,
    }
