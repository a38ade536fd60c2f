"""People, what is remembered of them, their profiles, and how applications answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.learning.facts import fact
from proxy.learning.facts.fact import FIRST, MAX_ABOUT, MAX_STATEMENT
from proxy.learning.instructions import document
from proxy.learning.instructions.document import MAX_TEXT
from proxy.learning.kinds import Kinds
from proxy.memory_api.fields import (
    NO_TIME,
    VISIBLE,
    Count,
    Json,
    Listing,
    RawJson,
    Time,
    UserId,
    error_text,
    integer_field,
)

MAX_METADATA = 4096
"""Bytes of JSON."""

MAX_FOUND = 50

ONLY_FACTS = error_text('must be "fact": nothing else can be added.')

STANDING_KINDS = ("instruction", "preference")
STANDING_RANK = 1
"""Where standing instructions are among the kinds of what is learned."""


def memory_kinds(kinds: Kinds, *beside: str) -> tuple[str, ...]:
    """The kinds of memories, as they are listed: those of what is learned, and of what was said."""
    learned = [(kind.rank, kind.memory) for kind in kinds.listed]
    before = [name for rank, name in learned if rank < STANDING_RANK]
    return (
        *before,
        *beside,
        *STANDING_KINDS,
        *(name for rank, name in learned if rank >= STANDING_RANK),
    )


SEARCHED = memory_kinds(Kinds(), "passage")
Searched = Annotated[str, Meta(extra_json_schema={"enum": sorted(SEARCHED)})]

GivenTime = Annotated[
    float,
    Meta(
        ge=FIRST,
        lt=NO_TIME,
        description="Unix seconds.",
        examples=[1767225600.0],
        extra=error_text("must be a time in Unix seconds, or null."),
    ),
]
TEXT = error_text(f"must have 1 to {MAX_STATEMENT} characters.")
ABOUT = error_text(f"must have {MAX_ABOUT} characters at most.")
METADATA = error_text(f"must be an object of at most {MAX_METADATA} bytes.", MAX_METADATA)

State = Literal["current", "expired", "superseded", "quarantined"]


def _one(*kinds: str) -> dict[str, Any]:
    return error_text(f"must be one of: {', '.join(kinds)}.")


def _several(*kinds: str) -> dict[str, Any]:
    return error_text(f"must be a list of: {', '.join(kinds)}.")


class Person(Struct, kw_only=True, tag_field="object", tag="user"):
    """A person who has sessions."""

    id: UserId
    sessions: Count
    last_active_at: Time


class User(Struct, kw_only=True, tag_field="object", tag="user"):
    """What there is of a person, in numbers."""

    id: UserId
    sessions: Count
    messages: Count
    tokens: Count
    first_active_at: Time | None
    last_active_at: Time | None
    memories: Annotated[dict[str, Count], Meta(description="By kind.")]


class UserList(Listing[Person], kw_only=True):
    """People, newest activity first; a part may be short though there are more."""


class Source(Struct, kw_only=True):
    """A message that something was learned from."""

    session_id: str
    message_id: str
    exchange_id: str
    created_at: Time


class Memory(Struct, kw_only=True, tag_field="object", tag="memory"):
    """Something remembered of a person: a fact, a standing wish, an episode, a passage."""

    id: str
    kind: Annotated[Any, Meta(extra_json_schema={"enum": sorted(SEARCHED)})]
    text: str
    about: str
    state: State
    sources: list[Source]
    origin: Literal["learned", "saved", "added", "said", "feedback"]
    edited: Annotated[bool, Meta(description="Has a person changed it?")]
    expires_at: Time | None
    created_at: Time
    updated_at: Time
    version: Count
    score: float | UnsetType = UNSET
    parts: dict[str, float] | UnsetType = UNSET
    tokens: Count | UnsetType = UNSET
    role: str | UnsetType = UNSET
    message_id: str | None | UnsetType = UNSET
    session_id: str | None | UnsetType = UNSET
    valid_from: Time | UnsetType = UNSET
    last_confirmed: Time | UnsetType = UNSET
    superseded_by: str | None | UnsetType = UNSET
    doubted_by: Annotated[
        str | None | UnsetType,
        Meta(description="A model gave its place to this one, though nobody said anything of it."),
    ] = UNSET
    later: Annotated[
        str | None | UnsetType, Meta(description="The value that was said later in its place.")
    ] = UNSET
    metadata: Json | UnsetType = UNSET
    question: Annotated[str | UnsetType, Meta(description="Of an episode.")] = UNSET
    answer: Annotated[str | UnsetType, Meta(description="Of an episode.")] = UNSET


class MemoryList(Listing[Memory], kw_only=True):
    """Memories of a person."""


class NewMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """A fact to be remembered."""

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_STATEMENT,
            pattern=VISIBLE,
            examples=["Is allergic to peanuts."],
            extra=TEXT,
        ),
    ]
    about: Annotated[str, Meta(max_length=MAX_ABOUT, examples=["user"], extra=ABOUT)] | None = None
    kind: Annotated[Literal["fact"] | None, Meta(extra=ONLY_FACTS)] = None
    valid_from: GivenTime | None = None
    expires_at: GivenTime | None = None
    metadata: Annotated[
        Json | None, Meta(description=f"At most {MAX_METADATA} bytes.", extra=METADATA)
    ] = None


class MemoryChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed of a fact; what is left out stays."""

    text: (
        Annotated[str, Meta(min_length=1, max_length=MAX_STATEMENT, pattern=VISIBLE, extra=TEXT)]
        | UnsetType
    ) = UNSET
    about: Annotated[str, Meta(max_length=MAX_ABOUT, extra=ABOUT)] | None | UnsetType = UNSET
    state: Annotated[fact.State | None | UnsetType, Meta(extra=_one(*get_args(fact.State)))] = UNSET
    expires_at: GivenTime | None | UnsetType = UNSET
    metadata: Annotated[Json | None | UnsetType, Meta(extra=METADATA)] = UNSET


class MemorySearch(Struct, kw_only=True):
    """A question, and what an answer must be."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            examples=["What must not be in the food?"],
            extra=error_text("must be a text that says what to look for."),
        ),
    ]
    kinds: Annotated[list[Searched] | None, Meta(extra=_several(*SEARCHED))] = None
    states: Annotated[
        list[State] | None,
        Meta(
            description="Of facts; all else is current. By default current ones.",
            extra=_several(*get_args(State)),
        ),
    ] = None
    filter: Annotated[
        RawJson | None,
        Meta(
            description="Values that fields have, or `{$eq, $ne, $gt, $gte, $lt, $lte: value}`.",
            examples=[{"about": "user"}],
        ),
    ] = None
    limit: Annotated[int, integer_field(1, MAX_FOUND)] | None = None


class MemoryDeleted(Struct, kw_only=True, tag_field="object", tag="memory.deleted"):
    """What is removed."""

    id: str
    deleted: bool


class Profile(Struct, kw_only=True, tag_field="object", tag="profile"):
    """A person's profile: a document of the operator's own schema."""

    user_id: UserId
    document: Json
    version: Count
    updated_at: Time | None


class PatchOperation(Struct, kw_only=True):
    """One change (RFC 6902)."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    value: Any = UNSET


class ProfileVersion(Struct, kw_only=True, tag_field="object", tag="profile.version"):
    """A version of a profile, and the change that made it."""

    version: Count
    document: Json
    patch: Sequence[Json]
    origin: Literal["learned", "edited"]
    sources: list[Source]
    rolled_back_to: int | None
    created_at: Time


class ProfileVersionList(Listing[ProfileVersion], kw_only=True):
    """Versions of a profile, by number."""


class Rollback(Struct, kw_only=True):
    """The version that is to be in force again."""

    version: Annotated[int, Meta(ge=1, extra=error_text("must be the number of a version."))]


class Instructions(Struct, kw_only=True, tag_field="object", tag="instructions"):
    """How an application answers; version 0 where there never was a text."""

    application: str
    text: str
    version: Count
    updated_at: Time | None


class InstructionsText(Struct, kw_only=True):
    """The new text."""

    text: Annotated[
        str,
        Meta(
            max_length=MAX_TEXT,
            examples=["Answer in the user's own language."],
            extra=error_text(f"must be a text of at most {MAX_TEXT} characters."),
        ),
    ]


class InstructionsVersion(Struct, kw_only=True, tag_field="object", tag="instructions.version"):
    """A version of instructions."""

    version: Count
    text: str
    origin: document.Origin
    proposal_id: str | None
    rolled_back_to: int | None
    created_at: Time


class InstructionsVersionList(Listing[InstructionsVersion], kw_only=True):
    """Versions of instructions, by number."""


class Proposal(Struct, kw_only=True, tag_field="object", tag="instructions.proposal"):
    """A text that a model proposes because of feedback; `doubts` are why a person should look."""

    id: str
    application: str
    text: str
    why: str
    state: document.State
    doubts: list[str]
    base_version: Count
    feedback: Count
    sources: Annotated[list[Source], Meta(description="The answers that it was about.")]
    created_at: Time
    decided_at: Time | None


class ProposalList(Listing[Proposal], kw_only=True):
    """Proposals, the oldest first."""


class Reflection(Struct, kw_only=True, tag_field="object", tag="instructions.reflection"):
    """A proposal will be made soon, if there is any feedback."""

    application: str
    feedback: bool
