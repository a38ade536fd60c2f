"""Instructions, items of one's own, figures, callers, files."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.admin.item_asking import LONGEST_NAME, LONGEST_TTL, MOST_LABELS
from proxy.admin.openapi.shapes.fields import Count, Json, Listing, Time
from proxy.learning.instructions import LONGEST_TEXT

PLAIN = r"^[^\u0000-\u001f\u007f-\u009f]+$"
"""A text without control characters."""

Label = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=PLAIN)]
Namespace = Annotated[
    list[Label], Meta(min_length=1, max_length=MOST_LABELS, examples=[["recipes", "soups"]])
]
Prefix = Annotated[list[Label], Meta(max_length=MOST_LABELS)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Offset = Annotated[int, Meta(ge=0, le=2**53)]


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


class Item(Struct, kw_only=True):
    """An item of one's own, or, read-only, one of what was learned."""

    object: Literal["item"]
    namespace: list[str]
    key: str
    value: Json
    version: Count
    created_at: Time
    updated_at: Time
    expires_at: Time | None
    score: Annotated[
        float | None | UnsetType, Meta(description="Only in a search; null without a query.")
    ] = UNSET


class NewItem(Struct, kw_only=True):
    """An item, new or in place of what is there."""

    namespace: Namespace
    key: Annotated[Label, Meta(examples=["gazpacho"])]
    value: Annotated[Json, Meta(examples=[{"serves": 4}])]
    ttl: Annotated[int, Meta(ge=0, le=LONGEST_TTL, description="Seconds; 0: for ever.")] | None = (
        None
    )
    if_version: (
        Annotated[
            int, Meta(ge=0, le=2**53, description="Only in place of this version; 0: of none.")
        ]
        | None
    ) = None


class ItemSearch(Struct, kw_only=True):
    """Which items, in which order, and which part of them."""

    namespace_prefix: Prefix | None = None
    query: Annotated[str | None, Meta(description="Words to look for in the values.")] = None
    filter: Annotated[Json | None, Meta(examples=[{"serves": {"$gte": 2}}])] = None
    limit: Limit | None = None
    offset: Offset | None = None


class NamespaceSearch(Struct, kw_only=True):
    """Which namespaces; `*` stands for any label."""

    prefix: Prefix | None = None
    suffix: Prefix | None = None
    max_depth: Annotated[int, Meta(ge=1, le=MOST_LABELS)] | None = None
    limit: Limit | None = None
    offset: Offset | None = None


class Part(Struct, kw_only=True):
    """A part of a list that is counted through."""

    object: Literal["list"]
    has_more: bool
    next: Annotated[int | None, Meta(description="The offset of the next part.")]


class ItemList(Part, kw_only=True):
    """Items by place, or for a query the best first."""

    data: list[Item]


class NamespaceList(Part, kw_only=True):
    """Namespaces that have items."""

    data: list[list[str]]


class ItemDeleted(Struct, kw_only=True):
    """What is removed."""

    object: Literal["item.deleted"]
    namespace: list[str]
    key: str
    deleted: bool


class Spent(Struct, kw_only=True):
    """What background work with models has cost."""

    calls: Count
    failed: Count
    input_tokens: Count
    output_tokens: Count
    cost_usd: float


class SpentOn(Spent, kw_only=True):
    """The same of one feature on one day."""

    day: str
    feature: str


class Usage(Struct, kw_only=True, rename={"first": "from"}):
    """Costs of background work, by day (UTC) and feature."""

    object: Literal["usage"]
    first: Annotated[str, Meta(examples=["2026-01-01"])]
    to: Annotated[str, Meta(examples=["2026-01-31"])]
    total: Spent
    data: list[SpentOn]


class Tokens(Struct, kw_only=True):
    """Tokens: as upstreams counted them, and what memory added and left out."""

    prompt: Count
    completion: Count
    cached: Count
    injected: int
    recalled: int
    evicted: int


class Latency(Struct, kw_only=True):
    """What memory took before the upstream was called, in milliseconds."""

    p50: float | None
    p95: float | None


class Figures(Struct, kw_only=True):
    """What happened in a time."""

    sessions: Count
    messages: Count
    exchanges: Count
    tokens: Tokens
    latency_ms: Latency


class Bucket(Figures, kw_only=True):
    """What happened in an hour, or on a day (UTC) that begins at `at`."""

    at: Time


class Stats(Struct, kw_only=True):
    """What memory has done over time; `complete` is false where not all could be looked at."""

    object: Literal["stats"]
    since: Time
    until: Time
    bucket: Literal["day", "hour"]
    complete: bool
    totals: Figures
    series: list[Bucket]


class WhoAmI(Struct, kw_only=True):
    """Who asks; `tenant` is null for the administrator who has chosen none."""

    object: Literal["caller"]
    tenant: str | None
    admin: bool
    client: str | None
    profiles: list[str]
    version: str


class Tenant(Struct, kw_only=True):
    """Somebody whose memory there is."""

    object: Literal["tenant"]
    id: str


class TenantList(Listing, kw_only=True):
    """All tenants, sorted."""

    data: list[Tenant]


class Skipped(Struct, kw_only=True):
    """What was there already, or not to be put there."""

    sessions: Count
    memories: Count


class Imported(Struct, kw_only=True):
    """What was imported."""

    object: Literal["import"]
    format: Literal["memory-proxy", "openai", "chat_jsonl", "chatgpt", "langchain"]
    sessions: Count
    messages: Count
    exchanges: Count
    memories: Count
    skipped: Skipped
    warnings: list[str]


class Refusal(Struct, kw_only=True):
    """Why a request was refused."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None
    code: str


class Error(Struct, kw_only=True):
    """An error in the shape that OpenAI's clients read."""

    error: Refusal
