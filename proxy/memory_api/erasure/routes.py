"""Erasing over the memory API, with a receipt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import asdict
from starlette.requests import Request

from proxy.errors import session_not_found
from proxy.learning.kinds import Kinds
from proxy.logs import audit, hashed
from proxy.memory.erasure import MARK_SECONDS, Subject
from proxy.memory_api.access import log_fields
from proxy.memory_api.api import Api
from proxy.memory_api.call import RawRequest, RequestConditions
from proxy.memory_api.conversations.sessions import SESSION, TAG
from proxy.memory_api.endpoint import stop_on_disconnect
from proxy.memory_api.erasure.receipt import Counts as Gone
from proxy.memory_api.erasure.receipt import Receipt
from proxy.memory_api.objects import session_object
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import DryRun, PersonAt, SessionAt
from proxy.memory_api.people.people import ONE as PERSON
from proxy.memory_api.people.people import TAG as USERS
from proxy.memory_api.people.people import person_of
from proxy.memory_api.shapes.sessions import Counts, Erasure, SessionErasure


@operation("DELETE", SESSION, TAG)
async def delete_session(
    api: Api, key: SessionAt, dry_run: DryRun, conditions: RequestConditions, request: RawRequest
) -> SessionErasure:
    """Erase a session.

    With all that it owns, for good, and with what is written meanwhile: conditions are compared
    when it begins. Where there is none, what an erasure that was cut off has left of it is removed
    before the 404. `dry_run=true` only counts.
    """
    session = await api.store.session(key)
    conditions.check(session_object(session) if session else None)
    if dry_run:  # what only counts ends when its client leaves; an erasure goes on
        with stop_on_disconnect(request):
            receipt = await api.eraser.count_session(key)
    else:
        with _log_if_interrupted(request, Subject(key.tenant, session=key.session)) as removed:
            receipt = await api.eraser.erase_session(key, removed)
    if receipt is None:
        raise session_not_found()
    _audit(request, receipt)
    return SessionErasure(
        session_id=key.session,
        **_receipt_object(receipt, api.learned.kinds),
        id=key.session,
        deleted=not dry_run,
    )


@operation("DELETE", PERSON, USERS)
async def delete_user(
    api: Api, owner: PersonAt, dry_run: DryRun, conditions: RequestConditions, request: RawRequest
) -> Erasure:
    """Erase a person.

    Everything, for good, with a receipt, and what is written meanwhile as well: conditions are
    compared when it begins. Of nobody known that is nothing, and no error. `dry_run=true` only
    counts.
    """
    if conditions.has_any:
        conditions.check(await person_of(api, owner))
    await api.reach(owner.tenant)
    tenant, user = owner.tenant, owner.user
    if dry_run:
        with stop_on_disconnect(request):
            receipt = await api.eraser.count_person(tenant, user)
    else:
        with _log_if_interrupted(request, Subject(tenant, user)) as removed:
            receipt = await api.eraser.erase_person(tenant, user, removed)
    _audit(request, receipt)
    return Erasure(user_id=user, **_receipt_object(receipt, api.learned.kinds))


@contextmanager
def _log_if_interrupted(request: Request, subject: Subject) -> Iterator[Gone]:
    """Counts to be filled with what is erased; they are logged if the block raises."""
    removed = Gone()
    try:
        yield removed
    except BaseException:  # also where the process ends
        if removed:
            _log(request, subject, removed, unfinished=True)
        raise


def _audit(request: Request, receipt: Receipt) -> None:
    if receipt.erased_at is not None:  # else only counted
        _log(request, receipt.subject, receipt.counts)


def _log(request: Request, subject: Subject, counts: Gone, **more: bool) -> None:
    subject_kind = "session" if subject.session else "user"
    audit(
        "erased",
        **log_fields(request),
        **{subject_kind: hashed(subject.session or subject.user or "")},
        sessions=counts.sessions,
        messages=counts.messages,
        memories=counts.memories.total(),
        items=counts.items,
        **more,
    )


def _receipt_object(receipt: Receipt, kinds: Kinds) -> dict[str, Any]:
    """``marked_until``: what began before ``erased_at`` is refused until then at least."""
    counts, at = receipt.counts, receipt.erased_at
    memories = {kind.memory: counts.memories[kind.memory] for kind in kinds.personal}
    return {
        "dry_run": at is None,
        "erased_at": at,
        "counts": Counts(**{**asdict(counts), "memories": memories}),
        "marked_until": at + MARK_SECONDS if at is not None else None,
    }
