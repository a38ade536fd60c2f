"""Sessions, summaries, and what can be done with them as a whole."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.learning.collection import Action
from proxy.memory.archive import MAX_METADATA
from proxy.memory_api.fields import (
    NOT_BLANK,
    ChatMessage,
    Count,
    Json,
    Listing,
    RawJson,
    Seq,
    SessionId,
    Time,
    Title,
    Ttl,
    UserId,
    error_text,
    raw_json,
)

CHANGEABLE = "What can be changed is"
SYSTEM = "must be system or developer messages, or null."

Preview = Annotated[
    str, Meta(max_length=140, description="How the user begins; only with `preview=true`.")
]


class Summary(Struct, kw_only=True):
    """The rolling summary in force; `covers_until` is the last seq that it stands for."""

    text: str
    version: Count
    covers_until: Seq
    edited: Annotated[bool, Meta(description="Did a person write it?")]
    tokens: Count
    created_at: Time


class SummaryVersion(Summary, kw_only=True, tag_field="object", tag="session.summary"):
    """One version of a session's summary."""

    model: Annotated[str | None, Meta(description="What wrote it, null for a person.")]


class Session(Struct, kw_only=True, tag_field="object", tag="session"):
    """A conversation, and what memory knows of it."""

    id: SessionId
    user_id: UserId | None
    messages: Annotated[int, Meta(ge=0, description="Active messages.")]
    tokens: Annotated[int, Meta(ge=0, description="Tokens of the active messages.")]
    system: ChatMessage | None
    system_messages: Annotated[
        list[ChatMessage], Meta(description="Remembered for requests that bring none.")
    ]
    summary: Summary | None
    window_start: Annotated[Seq, Meta(description="Where the default profile's window begins.")]
    windows: Annotated[dict[str, Seq], Meta(description="Where windows begin, by profile.")]
    end: Annotated[Seq, Meta(description="The last seq that is taken.")]
    title: Title | None
    metadata: Json
    ttl: Ttl
    created_at: Time
    last_active_at: Time
    preview: Preview | None | UnsetType = UNSET


class SessionList(Listing[Session], kw_only=True):
    """Sessions, newest activity first."""


class SummaryList(Listing[SummaryVersion], kw_only=True):
    """Versions of a summary, the newest first."""


class SystemMessage(Struct, kw_only=True):
    """A message that tells the model how to behave."""

    role: Literal["system", "developer"]
    content: Annotated[
        str, Meta(min_length=1, pattern=NOT_BLANK, examples=["Answer in one sentence."])
    ]


class SummaryText(Struct, kw_only=True, forbid_unknown_fields=True):
    """Other words for the same messages."""

    ONLY: ClassVar[str] = CHANGEABLE
    text: Annotated[
        str,
        Meta(
            min_length=1,
            pattern=NOT_BLANK,
            examples=["They plan a trip to Lisbon in May."],
            extra=error_text("must say something; null forgets the summary."),
        ),
    ]


class SessionChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed; what is left out stays."""

    ONLY: ClassVar[str] = CHANGEABLE
    title: Title | None | UnsetType = UNSET
    metadata: Annotated[
        RawJson | UnsetType,
        Meta(
            description="Replaces the whole object; at most 16 kB.",
            extra=error_text(
                f"must be a JSON object of at most {MAX_METADATA} bytes.", MAX_METADATA
            ),
        ),
    ] = UNSET
    ttl: Ttl | UnsetType = UNSET
    system: Annotated[
        SystemMessage | Annotated[list[SystemMessage], Meta(min_length=1)] | None | UnsetType,
        raw_json(SYSTEM),
    ] = UNSET
    summary: Annotated[
        SummaryText | None | UnsetType, Meta(extra=error_text('must be {"text": "..."} or null.'))
    ] = UNSET


class Fork(Struct, kw_only=True, forbid_unknown_fields=True):
    """A new session, and how far the old one goes into it."""

    id: SessionId
    until: Annotated[
        str | None,
        Meta(
            description="The last message that the new session has; by default all.",
            extra=error_text("must be a string."),
        ),
    ] = None
    title: Title | None = None


class RewindTurns(Struct, kw_only=True, forbid_unknown_fields=True):
    """Take back so many turns."""

    turns: Annotated[int, Meta(ge=1, extra=error_text("must be a whole number from 1."))]


class RewindTo(Struct, kw_only=True, forbid_unknown_fields=True):
    """Take back a message, and all behind it."""

    to: Annotated[str, Meta(min_length=1, extra=error_text("must be the id of a message."))]


class Forget(Struct, kw_only=True):
    """What is to be forgotten: what a session taught, or one exchange of it."""

    exchange_id: Annotated[str | None, Meta(extra=error_text("must be a string."))] = None
    dry_run: Annotated[
        bool,
        Meta(
            description="Only say what would be forgotten.",
            extra=error_text("must be true or false."),
        ),
    ] = False


class Forgotten(Struct, kw_only=True):
    """Something learned that is forgotten, or has changed."""

    id: str
    kind: str
    action: Action
    text: str


class ForgetReceipt(Struct, kw_only=True, tag_field="object", tag="memory.forgotten"):
    """What was forgotten, or would be."""

    session_id: SessionId
    exchange_id: str | None
    dry_run: bool
    data: list[Forgotten]


class Counts(Struct, kw_only=True):
    """How much of each kind."""

    sessions: Count
    messages: Count
    exchanges: Count
    summaries: Count
    memories: Annotated[dict[str, Count], Meta(description="By kind.")]
    items: Count
    feedback: Count
    proposals: Annotated[Count, Meta(description="Of better instructions, made of such feedback.")]
    index_passages: Count
    spooled: Count


class Erasure(Struct, kw_only=True, tag_field="object", tag="erasure"):
    """A receipt of what was erased of a person, or would be."""

    user_id: UserId
    dry_run: bool
    erased_at: Time | None
    counts: Counts
    marked_until: Annotated[
        Time | None, Meta(description="What began before the erasure is refused until then.")
    ]


class SessionErasure(Struct, kw_only=True, tag_field="object", tag="session.deleted"):
    """A receipt of what was erased with a session, or would be."""

    session_id: SessionId
    dry_run: bool
    erased_at: Time | None
    counts: Counts
    marked_until: Time | None
    id: SessionId
    deleted: bool
