"""Messages, exchanges, previews and feedback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.learning.feedback import MAX_COMMENT
from proxy.memory.model import Origin, State, Status
from proxy.memory.prompt.compose import Reason
from proxy.memory_api.fields import (
    NO_TIME,
    NOT_BLANK,
    Count,
    Json,
    Listing,
    Seq,
    Time,
    UserId,
    error_text,
    raw_json,
)


class Message(Struct, kw_only=True, tag_field="object", tag="session.message"):
    """A message at its place in history."""

    id: str
    seq: Seq
    exchange_id: str
    message: Json
    tokens: Count
    state: State
    origin: Origin
    incomplete: Annotated[bool, Meta(description="Was the answer cut off?")]
    created_at: Time


class MessageList(Listing[Message], kw_only=True):
    """Messages by seq, ascending."""


Role = Annotated[
    Literal["system", "developer", "user", "assistant", "tool", "function"], Meta(examples=["user"])
]


class SentMessage(Struct, kw_only=True):
    """A message of a chat's request: what must be in it is the upstream's to judge."""

    role: Annotated[Any, Meta(examples=["user"])] = UNSET
    content: Annotated[
        Any,
        Meta(description="Text, or a list of parts.", examples=["What is worth seeing in Lisbon?"]),
    ] = None


class ContentPart(Struct, kw_only=True):
    """A part of a message's content, of whatever type; one of type `text` has its `text`."""

    type: Annotated[str, Meta(examples=["image_url"])]


class ToolCall(Struct, kw_only=True):
    """A call of a tool: of a `function` with `name` and `arguments`, or of type `custom`."""

    id: str


class WrittenMessage(Struct, kw_only=True):
    """A message for history: one that upstreams can read, as later requests carry it.

    Only an assistant's may be without content, if it has calls, a refusal or audio.
    """

    role: Role
    content: Annotated[
        str | Annotated[list[ContentPart], Meta(min_length=1)] | None,
        Meta(description="Text, or a list of parts.", examples=["What is worth seeing in Lisbon?"]),
    ] = None
    tool_calls: list[ToolCall] | None = None


class NewMessages(Struct, kw_only=True):
    """Messages from elsewhere; leading system messages become the remembered ones."""

    messages: Annotated[
        list[WrittenMessage],
        Meta(min_length=1),
        raw_json("must be a list of one or more messages."),
    ]
    user: UserId | None = None
    created_at: Annotated[
        list[
            Annotated[
                float, Meta(ge=0, lt=NO_TIME, extra=error_text("must be a time in Unix seconds."))
            ]
        ]
        | None,
        Meta(
            description="When each message was made, in Unix seconds; as many as messages.",
            extra=error_text("must be a list of numbers."),
        ),
    ] = None


class MessageContent(Struct, kw_only=True, forbid_unknown_fields=True):
    """Other content for a message."""

    content: Annotated[
        Annotated[
            str, Meta(min_length=1, pattern=NOT_BLANK, examples=["What is worth seeing in Porto?"])
        ]
        | Annotated[list[ContentPart], Meta(min_length=1)],
        raw_json("must be a string or a list of one or more parts."),
    ]


class WholeMessage(Struct, kw_only=True, forbid_unknown_fields=True):
    """A whole message in the place of another; its role cannot change."""

    message: Annotated[WrittenMessage, raw_json("must be an object.")]


class MessageDeleted(Struct, kw_only=True, tag_field="object", tag="session.message.deleted"):
    """What is removed: a message, and with calls their results."""

    id: str
    deleted: bool
    ids: Annotated[list[str], Meta(description="All that are removed.")]


class Recalled(Struct, kw_only=True):
    """Something recalled, by its id."""

    kind: str
    score: float
    parts: Mapping[str, float]
    tokens: Count
    message_id: str | None
    session_id: str | None
    memory_id: str | None


class Evicted(Struct, kw_only=True):
    """What was left out of the prompt, and why."""

    messages: Count
    tokens: Count
    reason: Reason | None


class Breakdown(Struct, kw_only=True):
    """Injected tokens by what they were spent on."""

    system: int
    summary: int
    messages: int
    known: int
    recalled: int


class Shown(Struct, kw_only=True):
    """One thing in a prompt, by its id; never its text."""

    kind: str
    id: str | None
    session_id: str | None
    tokens: int
    score: float | UnsetType = UNSET
    version: int | UnsetType = UNSET


class Stretch(Struct):
    """Messages that follow one another, by the `seq` of the first and of the last."""

    first: Count
    last: Count


Resent = Annotated[
    list[Stretch], Meta(description="Stored messages that the request itself brought once more.")
]


Rewriting = Annotated[
    Literal["rewritten", "same", "late", "failed", "busy"],
    Meta(description="What came of writing out a question that points back."),
]


class MemoryEffect(Struct, kw_only=True):
    """What memory did for an exchange; `shown` is in the order of the prompt."""

    status: Status
    reason: str | None
    messages: Count
    tokens: int
    recalled: list[Recalled]
    tools: Annotated[list[Json], Meta(description="Calls of memory that the model made.")]
    evicted: Evicted
    duration_ms: float
    breakdown: Breakdown | None
    shown: list[Shown]
    shown_cut: Annotated[int, Meta(ge=0, description="How many more there are than are listed.")]
    resent: Resent
    rewriting: Rewriting | UnsetType = UNSET


class Exchange(Struct, kw_only=True, tag_field="object", tag="session.exchange"):
    """One request and its answer, and what memory did for it."""

    id: str
    model: str | None
    profile: str
    status: int
    incomplete: bool
    finish_reason: str | None
    usage: Annotated[Any, Meta(description="As the upstream said it.")]
    memory: MemoryEffect
    message_ids: list[str]
    follows: Annotated[
        str | None,
        Meta(description='The message that it went on from: "" for none, null if not known.'),
    ]
    created_at: Time


class ExchangeList(Listing[Exchange], kw_only=True):
    """Exchanges, the newest first."""


class ContextRequest(Struct, kw_only=True):
    """The request of a chat, as far as it matters for what memory would do."""

    messages: Annotated[list[SentMessage], raw_json("must be a list of message objects.")]
    model: Annotated[str | None, raw_json("must be a string.")] = None
    profile: Annotated[
        str | None,
        Meta(
            description="A profile of the configuration; by default [memory].",
            extra=error_text("must be a string."),
        ),
    ] = None


class Passage(Struct, kw_only=True, tag_field="object", tag="memory"):
    """A passage that would be recalled, with its text."""

    id: str
    kind: str
    text: str
    score: float
    parts: Mapping[str, float]
    tokens: Count
    role: str
    message_id: str
    session_id: str
    created_at: Time


class Known(Struct, kw_only=True):
    """What is known of a kind, as the prompt has it."""

    kind: str
    text: str | list[str]
    tokens: Count
    memory_ids: list[str]


class Injected(Struct, kw_only=True):
    """What memory would add."""

    messages: Count
    tokens: int
    recalled: Count


class Context(Struct, kw_only=True, tag_field="object", tag="context"):
    """A preview: exactly the messages that would be sent."""

    messages: list[SentMessage]
    tokens: Count
    injected: Injected
    evicted: Evicted
    recalled: list[Passage]
    known: list[Known]
    summary: str | None
    breakdown: Breakdown | None
    shown: list[Shown]
    shown_cut: Count
    resent: Resent
    rewriting: Rewriting | UnsetType = UNSET
    rewritten: Annotated[
        str | UnsetType, Meta(description="Words that recall looked for beside the question's.")
    ] = UNSET


class NewFeedback(Struct, kw_only=True):
    """What a person thinks of an answer."""

    score: Annotated[Literal[-1, 0, 1], Meta(extra=error_text("must be -1, 0 or 1."))]
    comment: (
        Annotated[
            str,
            Meta(
                max_length=MAX_COMMENT,
                extra=error_text(f"must be a text of at most {MAX_COMMENT} characters."),
            ),
        ]
        | None
    ) = None


class Feedback(Struct, kw_only=True, tag_field="object", tag="message.feedback"):
    """What was said of an answer last."""

    session_id: str
    message_id: str
    exchange_id: str
    score: Literal[-1, 0, 1]
    comment: str | None
    created_at: Time
