"""Arguments and answers of tools: few fields, since a model reads and writes all of them.

Fields of answers have the names of the memory API's, whose objects they are parts of.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.learning.facts.fact import MAX_ABOUT, MAX_STATEMENT
from proxy.memory_api.fields import VISIBLE, SessionId, UserId, error_text, integer_field
from proxy.memory_api.shapes.people import ABOUT, MAX_FOUND, TEXT

MAX_QUERY = 1000
MAX_TEXT = 4000
MAX_ARGUMENTS = 1000
"""Characters of a question, of one text of an answer, and of the arguments of one call in it."""

MAX_CALLS = 20
"""Calls of one message in an answer."""

MAX_LISTED = 50
"""Sessions or messages of one answer."""

MAX_CURSOR = 2048

User = Annotated[
    UserId,
    Meta(description="Whose memory. Leave it out where the connection is of one user (X-User-Id)."),
]


def _text(most: int, description: str) -> Meta:
    said = error_text(f"must have 1 to {most} characters.")
    return Meta(min_length=1, max_length=most, description=description, extra=said)


class SearchMemories(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is looked for."""

    query: Annotated[
        str, _text(MAX_QUERY, "A question or a few words, as the user would say them.")
    ]
    user: User | UnsetType = UNSET
    limit: Annotated[int, integer_field(1, MAX_FOUND, "The most memories to answer.")] = 10


class SaveMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be remembered."""

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_STATEMENT,
            pattern=VISIBLE,
            description="One fact in one sentence that can be understood alone.",
            examples=["Is allergic to peanuts."],
            extra=TEXT,
        ),
    ]
    about: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=MAX_ABOUT,
                description="Whom or what the fact is about, where that is not the user.",
                extra=ABOUT,
            ),
        ]
        | UnsetType
    ) = UNSET
    user: User | UnsetType = UNSET


class ForgetMemory(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is to be forgotten."""

    memory_id: Annotated[str, _text(256, "The id of a memory, as search_memories answers it.")]
    user: User | UnsetType = UNSET


class ListSessions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which sessions."""

    query: (
        Annotated[str, _text(MAX_QUERY, "Only sessions with this in their id, title or user.")]
        | UnsetType
    ) = UNSET
    user: User | UnsetType = UNSET
    limit: Annotated[int, integer_field(1, MAX_LISTED, "The most sessions to answer.")] = 20
    after: (
        Annotated[str, _text(MAX_CURSOR, "next of the answer before, for what follows.")]
        | UnsetType
    ) = UNSET


class ReadSession(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which part of which session."""

    session_id: Annotated[
        SessionId, Meta(description="The id of a session, as list_sessions answers it.")
    ]
    limit: Annotated[int, integer_field(1, MAX_LISTED, "The most messages to answer.")] = 20
    after: (
        Annotated[
            int,
            integer_field(
                0,
                10**15 - 1,
                "Messages behind this seq; 0 is from the beginning. Without it, the last ones.",
            ),
        ]
        | UnsetType
    ) = UNSET


class FoundMemory(Struct, kw_only=True, omit_defaults=True):
    """`kind`: fact, instruction or preference (standing wishes), episode, or passage, which is what
    was said in a session.  `score` is from 0 to 1."""

    id: str
    kind: str
    text: str
    about: str
    created_at: datetime
    score: float = 0.0
    session_id: str | None = None


class FoundMemories(Struct, kw_only=True):
    """Best first."""

    data: list[FoundMemory]


class SavedMemory(Struct, kw_only=True):
    """A fact as it is kept.  `state`: current, or quarantined, which reads like an instruction and
    is neither used nor found until a person releases it."""

    id: str
    kind: str
    text: str
    about: str
    state: str
    created_at: datetime


class ForgottenMemory(Struct, kw_only=True):
    """What is gone."""

    id: str
    deleted: bool


class ListedSession(Struct, kw_only=True, omit_defaults=True):
    """`preview` is how the user begins, `messages` how many there are."""

    id: str
    messages: int
    last_active_at: datetime
    user_id: str | None = None
    title: str | None = None
    preview: str | None = None


class ListedSessions(Struct, kw_only=True):
    """Newest activity first.  `next`: what to give as `after` for more, null at the end."""

    data: list[ListedSession]
    next: str | None = None


class SessionCall(Struct, kw_only=True):
    """A call of a tool; `arguments` are as the model wrote them, JSON for most tools."""

    name: str
    arguments: str


class SessionMessage(Struct, kw_only=True, omit_defaults=True):
    """`calls` are those of tools that it makes.  `cut`: there is more of the text, of the calls or
    of their arguments than this."""

    seq: int
    role: str
    text: str
    created_at: datetime
    calls: list[SessionCall] = msgspec.field(default_factory=list)
    cut: bool = False


class SessionPart(Struct, kw_only=True):
    """`next`: what to give as `after` for more, null at the end."""

    session_id: str
    title: str | None
    messages: int
    data: list[SessionMessage]
    next: int | None


class SeenSession(Struct, kw_only=True):
    """The fields of a session that are needed to read it."""

    id: str
    end: int
    messages: int
    user_id: str | None = None
    title: str | None = None


class SeenMessage(Struct, kw_only=True):
    """A stored message."""

    seq: int
    message: msgspec.Raw
    created_at: datetime


class SeenMessages(Struct, kw_only=True):
    """A page of messages."""

    data: list[SeenMessage]
    next: str | None = None


Schema = dict[str, Any]


@cache
def schema_of(kind: type[Struct]) -> Schema:
    """A JSON schema with an object at its root, as MCP wants it."""
    _, parts = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    for part in parts.values():
        part["description"] = " ".join(part["description"].split())
    whole = parts.pop(kind.__name__)
    return {**whole, "$defs": parts} if parts else whole


def clipped(text: str, longest: int = MAX_TEXT) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
