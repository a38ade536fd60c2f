"""Operations on the instructions of applications."""

from __future__ import annotations

from proxy.admin.openapi.operation import Link, Operation, json_body
from proxy.admin.openapi.parameters import AFTER, AFTER_SEQ, APPLICATION, LIMIT, PROPOSAL
from proxy.admin.openapi.shapes.instructions import (
    Instructions,
    InstructionsText,
    InstructionsVersionList,
    Proposal,
    ProposalList,
    Reflection,
)
from proxy.admin.openapi.shapes.people import Rollback

TAG = "Instructions"
ONE = "/memory/v1/instructions/{application}"
PROPOSED = f"{ONE}/proposals/{{proposal}}"

SAME = {"application": "$request.path.application"}

OPERATIONS = (
    Operation(
        "GET",
        ONE,
        "getInstructions",
        TAG,
        "Get an application's instructions",
        Instructions,
        "An empty text where there is none.",
        (APPLICATION,),
    ),
    Operation(
        "PUT",
        ONE,
        "setInstructions",
        TAG,
        "Write an application's instructions",
        Instructions,
        "The new version.",
        (APPLICATION,),
        json_body(InstructionsText, language={"text": "Answer in the user's own language."}),
        conditional=True,
        links=(Link("getInstructions", SAME), Link("rollBackInstructions", SAME, {"version": 1})),
        founds=True,
    ),
    Operation(
        "GET",
        f"{ONE}/versions",
        "listInstructionsVersions",
        TAG,
        "List the versions of instructions",
        InstructionsVersionList,
        "By number, ascending.",
        (APPLICATION, LIMIT, AFTER_SEQ),
    ),
    Operation(
        "POST",
        f"{ONE}/rollback",
        "rollBackInstructions",
        TAG,
        "Put instructions back to an earlier version",
        Instructions,
        "That text once more, as a new version.",
        (APPLICATION,),
        json_body(Rollback, first={"version": 1}),
        errors=("version_not_found",),
        conditional=True,
    ),
    Operation(
        "GET",
        f"{ONE}/proposals",
        "listProposals",
        TAG,
        "List proposals",
        ProposalList,
        "The oldest first.",
        (APPLICATION, LIMIT, AFTER),
    ),
    Operation(
        "POST",
        f"{PROPOSED}/approve",
        "approveProposal",
        TAG,
        "Put a proposal into force",
        Proposal,
        parameters=(APPLICATION, PROPOSAL),
        errors=("proposal_not_found", "proposal_outdated"),
    ),
    Operation(
        "POST",
        f"{PROPOSED}/reject",
        "rejectProposal",
        TAG,
        "Turn a proposal down",
        Proposal,
        parameters=(APPLICATION, PROPOSAL),
        errors=("proposal_not_found", "proposal_outdated"),
    ),
    Operation(
        "POST",
        f"{ONE}/reflect",
        "reflectOnFeedback",
        TAG,
        "Ask for a proposal",
        Reflection,
        "Made of the feedback there is, soon.",
        (APPLICATION,),
        status=202,
        errors=("application_not_found",),
    ),
)
