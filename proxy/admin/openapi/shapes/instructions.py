"""How applications answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from proxy.admin.openapi.shapes.fields import Count, Listing, Time
from proxy.admin.openapi.shapes.people import Source
from proxy.learning.instructions import LONGEST_TEXT


class Instructions(Struct, kw_only=True):
    """How an application answers; version 0 where there never was a text."""

    object: Literal["instructions"]
    application: str
    text: str
    version: Count
    updated_at: Time | None


class InstructionsText(Struct, kw_only=True):
    """The new text."""

    text: Annotated[
        str, Meta(max_length=LONGEST_TEXT, examples=["Answer in the user's own language."])
    ]


class InstructionsVersion(Struct, kw_only=True):
    """A version of instructions."""

    object: Literal["instructions.version"]
    version: Count
    text: str
    origin: Literal["edited", "learned"]
    proposal_id: str | None
    rolled_back_to: int | None
    created_at: Time


class InstructionsVersionList(Listing, kw_only=True):
    """Versions of instructions, by number."""

    data: list[InstructionsVersion]


class Proposal(Struct, kw_only=True):
    """A text that a model proposes because of feedback; `doubts` are why a person should look."""

    object: Literal["instructions.proposal"]
    id: str
    application: str
    text: str
    why: str
    state: Literal["pending", "approved", "rejected", "applied"]
    doubts: list[str]
    base_version: Count
    feedback: Count
    sources: Annotated[list[Source], Meta(description="The answers that it was about.")]
    created_at: Time
    decided_at: Time | None


class ProposalList(Listing, kw_only=True):
    """Proposals, the oldest first."""

    data: list[Proposal]


class Reflection(Struct, kw_only=True):
    """A proposal will be made soon, if there is any feedback."""

    object: Literal["instructions.reflection"]
    application: str
    feedback: bool
