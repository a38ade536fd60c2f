"""An application's instructions, their versions, and a model's proposals."""

from __future__ import annotations

import time

from proxy.learning.instructions import document
from proxy.learning.instructions.document import Revision
from proxy.learning.instructions.store import Check, NotFound, Outdated, StoredInstructions
from proxy.memory.items import ItemOwner
from proxy.memory.model import SessionKey, WorkRequest
from proxy.memory_api.api import Api
from proxy.memory_api.call import RequestConditions, Tenant
from proxy.memory_api.conditions import Conditions
from proxy.memory_api.errors import (
    application_not_found,
    proposal_not_found,
    proposal_outdated,
    version_not_found,
)
from proxy.memory_api.objects import source_object
from proxy.memory_api.openapi.operation import Link
from proxy.memory_api.operation import operation
from proxy.memory_api.parameters import After, AfterSeq, ApplicationAt, Limit, ProposalAt
from proxy.memory_api.shapes.people import (
    Instructions,
    InstructionsText,
    InstructionsVersion,
    InstructionsVersionList,
    Proposal,
    ProposalList,
    Reflection,
    Rollback,
)
from proxy.settings import Settings

TAG = "Instructions"
ONE = "/memory/v1/instructions/{application}"
PROPOSALS = f"{ONE}/proposals"
SAME = {"application": "$request.path.application"}


@operation("GET", ONE, TAG)
async def get_instructions(api: Api, tenant: Tenant, name: ApplicationAt) -> Instructions:
    """Get an application's instructions.

    An empty text where there is none.
    """
    stored = await api.learned.instructions.current(ItemOwner(tenant), name)
    return instructions_object(name, stored)


@operation(
    "PUT",
    ONE,
    TAG,
    examples={"language": {"text": "Answer in the user's own language."}},
    links=(Link("getInstructions", SAME), Link("rollBackInstructions", SAME, {"version": 1})),
    creates_tenant=True,
)
async def set_instructions(
    api: Api,
    tenant: Tenant,
    name: ApplicationAt,
    new: InstructionsText,
    conditions: RequestConditions,
) -> Instructions:
    """Write an application's instructions.

    The new version.
    """
    text, check = new.text.strip(), _check(conditions, name)
    stored = await api.learned.instructions.write(ItemOwner(tenant), name, text, check)
    return instructions_object(name, stored)


@operation("GET", f"{ONE}/versions", TAG)
async def list_instructions_versions(
    api: Api, tenant: Tenant, name: ApplicationAt, limit: Limit, after: AfterSeq
) -> InstructionsVersionList:
    """List the versions of instructions.

    By number, ascending.
    """
    page = await api.learned.instructions.versions(ItemOwner(tenant), name, after, limit)
    data = [revision_object(revision) for revision in page.items]
    return InstructionsVersionList.part(data, page.after)


@operation(
    "POST", f"{ONE}/rollback", TAG, examples={"first": {"version": 1}}, errors=(version_not_found,)
)
async def roll_back_instructions(
    api: Api, tenant: Tenant, name: ApplicationAt, back: Rollback, conditions: RequestConditions
) -> Instructions:
    """Put instructions back to an earlier version.

    That text once more, as a new version.
    """
    instructions, check = api.learned.instructions, _check(conditions, name)
    try:
        stored = await instructions.roll_back(ItemOwner(tenant), name, back.version, check)
    except NotFound:
        raise version_not_found() from None
    return instructions_object(name, stored)


@operation("GET", PROPOSALS, TAG)
async def list_proposals(
    api: Api, tenant: Tenant, name: ApplicationAt, limit: Limit, after: After
) -> ProposalList:
    """List proposals.

    The oldest first.
    """
    page = await api.learned.instructions.proposals(ItemOwner(tenant), name, after, limit)
    return ProposalList.part([proposal_object(name, each) for each in page.items], page.after)


@operation("POST", f"{PROPOSALS}/{{proposal}}/approve", TAG)
async def approve_proposal(
    api: Api, tenant: Tenant, name: ApplicationAt, proposal: ProposalAt
) -> Proposal:
    """Put a proposal into force."""
    return await _decided(api, tenant, name, proposal, approve=True)


@operation("POST", f"{PROPOSALS}/{{proposal}}/reject", TAG)
async def reject_proposal(
    api: Api, tenant: Tenant, name: ApplicationAt, proposal: ProposalAt
) -> Proposal:
    """Turn a proposal down."""
    return await _decided(api, tenant, name, proposal, approve=False)


@operation("POST", f"{ONE}/reflect", TAG, status=202, errors=(application_not_found,))
async def reflect_on_feedback(api: Api, tenant: Tenant, name: ApplicationAt) -> Reflection:
    """Ask for a proposal.

    Made of the feedback there is, soon.
    """
    profile = _profile(api.settings, name)
    if profile is None:
        raise application_not_found()
    newest = await api.learned.pending.request_proposal(ItemOwner(tenant), name)
    if newest is not None:
        due = WorkRequest(kind="learning", profile=profile, due_at=time.time())
        await api.store.enqueue(SessionKey(tenant, newest.session), due)
    return Reflection(application=name, feedback=newest is not None)


async def _decided(api: Api, tenant: str, name: str, id: str, *, approve: bool) -> Proposal:
    try:
        decided = await api.learned.instructions.decide(ItemOwner(tenant), name, id, approve)
    except NotFound:
        raise proposal_not_found() from None
    except Outdated:
        raise proposal_outdated() from None
    return proposal_object(name, decided)


def _check(conditions: Conditions, name: str) -> Check:
    """A check that raises ProxyError if the conditions do not hold."""
    return lambda stored: conditions.check(instructions_object(name, stored))


def _profile(settings: Settings, application: str) -> str | None:
    """The profile with this application's instructions, "" for [memory]; None without one."""
    for name, profile in (("", settings.memory), *settings.profiles.items()):
        if profile.instructions.enabled and profile.instructions.name == application:
            return name
    return None


def instructions_object(application: str, stored: StoredInstructions) -> Instructions:
    return Instructions(
        application=application,
        text=stored.value.text,
        version=stored.value.version,
        updated_at=stored.updated_at,
    )


def revision_object(revision: Revision) -> InstructionsVersion:
    return InstructionsVersion(
        version=revision.version,
        text=revision.text,
        origin=revision.origin,
        proposal_id=revision.proposal,
        rolled_back_to=revision.rolled_back_to,
        created_at=revision.created_at,
    )


def proposal_object(application: str, proposal: document.Proposal) -> Proposal:
    return Proposal(
        id=proposal.id,
        application=application,
        text=proposal.text,
        why=proposal.why,
        state=proposal.state,
        doubts=list(proposal.doubts),
        base_version=proposal.base,
        feedback=proposal.feedback,
        sources=[source_object(feedback.source) for feedback in proposal.sources],
        created_at=proposal.created_at,
        decided_at=proposal.decided_at,
    )
