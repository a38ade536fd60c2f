"""People, what is remembered of them, and their profiles."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.admin.imports import NO_TIME
from proxy.admin.openapi.shapes.fields import VISIBLE, Count, Json, Listing, Time, UserId
from proxy.learning.fact import MOST_ABOUT, MOST_CHARACTERS
from proxy.learning.fact_dates import FIRST

GivenTime = Annotated[
    float, Meta(ge=FIRST, lt=NO_TIME, description="Unix seconds.", examples=[1767225600.0])
]


class Person(Struct, kw_only=True):
    """A person who has sessions."""

    object: Literal["user"]
    id: UserId
    sessions: Count
    last_active_at: Time


class User(Struct, kw_only=True):
    """What there is of a person, in numbers."""

    object: Literal["user"]
    id: UserId
    sessions: Count
    messages: Count
    tokens: Count
    memories: Annotated[dict[str, Count], Meta(description="By kind.")]
    first_active_at: Time | None
    last_active_at: Time | None


class UserList(Listing, kw_only=True):
    """People, newest activity first; a part may be short though there are more."""

    data: list[Person]


class Source(Struct, kw_only=True):
    """A message that something was learned from."""

    session_id: str
    message_id: str
    exchange_id: str
    created_at: Time


class Memory(Struct, kw_only=True):
    """Something remembered of a person: a fact, a standing wish, an episode, a passage."""

    object: Literal["memory"]
    id: str
    kind: Literal["fact", "instruction", "preference", "episode", "passage"]
    text: str
    about: str
    state: Literal["current", "expired", "superseded", "quarantined"]
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
    metadata: Json | UnsetType = UNSET
    question: Annotated[str | UnsetType, Meta(description="Of an episode.")] = UNSET
    answer: Annotated[str | UnsetType, Meta(description="Of an episode.")] = UNSET


class MemoryList(Listing, kw_only=True):
    """Memories of a person."""

    data: list[Memory]


class NewMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """A fact to be remembered."""

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MOST_CHARACTERS,
            pattern=VISIBLE,
            examples=["Is allergic to peanuts."],
        ),
    ]
    about: Annotated[str, Meta(max_length=MOST_ABOUT, examples=["user"])] | None = None
    kind: Literal["fact"] | None = None
    valid_from: GivenTime | None = None
    expires_at: GivenTime | None = None
    metadata: Annotated[Json | None, Meta(description="At most 4096 bytes.")] = None


class MemoryChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed of a fact; what is left out stays."""

    text: (
        Annotated[str, Meta(min_length=1, max_length=MOST_CHARACTERS, pattern=VISIBLE)] | UnsetType
    ) = UNSET
    about: Annotated[str, Meta(max_length=MOST_ABOUT)] | None | UnsetType = UNSET
    state: Literal["current", "superseded", "quarantined"] | None | UnsetType = UNSET
    expires_at: GivenTime | None | UnsetType = UNSET
    metadata: Json | None | UnsetType = UNSET


class MemorySearch(Struct, kw_only=True):
    """A question, and what an answer must be."""

    query: Annotated[str, Meta(min_length=1, examples=["What must not be in the food?"])]
    kinds: list[Literal["fact", "passage", "instruction", "preference", "episode"]] | None = None
    states: Annotated[
        list[Literal["current", "expired", "superseded", "quarantined"]] | None,
        Meta(description="Of facts; all else is current. By default current ones."),
    ] = None
    filter: Annotated[
        Json | None,
        Meta(
            description="Values that fields have, or `{$eq, $ne, $gt, $gte, $lt, $lte: value}`.",
            examples=[{"about": "user"}],
        ),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=50)] | None = None


class MemoryDeleted(Struct, kw_only=True):
    """What is removed."""

    object: Literal["memory.deleted"]
    id: str
    deleted: bool


class Profile(Struct, kw_only=True):
    """A person's profile: a document of the operator's own schema."""

    object: Literal["profile"]
    user_id: UserId
    document: Json
    version: Count
    updated_at: Time | None


class PatchOperation(Struct, kw_only=True):
    """One change (RFC 6902)."""

    op: Literal["add", "remove", "replace", "move", "copy", "test"]
    path: str
    value: Any = UNSET


class ProfileVersion(Struct, kw_only=True):
    """A version of a profile, and the change that made it."""

    object: Literal["profile.version"]
    version: Count
    document: Json
    patch: list[Json]
    origin: Literal["learned", "edited"]
    sources: list[Source]
    rolled_back_to: int | None
    created_at: Time


class ProfileVersionList(Listing, kw_only=True):
    """Versions of a profile, by number."""

    data: list[ProfileVersion]


class Rollback(Struct, kw_only=True):
    """The version that is to be in force again."""

    version: Annotated[int, Meta(ge=1)]
