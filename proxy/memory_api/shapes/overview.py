"""Everything at once: figures, callers, files; and errors."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from proxy.memory_api.fields import Count, Listing, Time
from proxy.portable.names import Format


class Spent(Struct, kw_only=True):
    """What background work with models has cost."""

    calls: Count
    failed: Count
    input_tokens: Count
    output_tokens: Count
    cost_usd: float


class SpentOn(Struct, kw_only=True):
    """The same of one feature on one day."""

    day: str
    feature: str
    calls: Count
    failed: Count
    input_tokens: Count
    output_tokens: Count
    cost_usd: float


class Usage(Struct, kw_only=True, tag_field="object", tag="usage", rename={"first": "from"}):
    """Costs of background work, by day (UTC) and feature."""

    first: Annotated[str, Meta(examples=["2026-01-01"])]
    to: Annotated[str, Meta(examples=["2026-01-31"])]
    total: Spent
    data: list[SpentOn]


class Tokens(Struct, kw_only=True):
    """Tokens: as upstreams counted them, and what memory added and left out."""

    prompt: Count
    completion: Count
    cached: Count
    cache_written: Count
    injected: int
    recalled: int
    evicted: int


class Latency(Struct, kw_only=True):
    """What memory took before the upstream was called, in milliseconds."""

    p50: float | None
    p95: float | None


WithUsage = Annotated[
    Count,
    Meta(description="Exchanges of which the upstream has told a prompt's tokens: these are here."),
]


class Figures(Struct, kw_only=True):
    """What happened in a time."""

    sessions: Count
    messages: Count
    exchanges: Count
    with_usage: WithUsage
    tokens: Tokens
    latency_ms: Latency


class Bucket(Struct, kw_only=True):
    """What happened in an hour, or on a day (UTC) that begins at `at`."""

    at: Time
    sessions: Count
    messages: Count
    exchanges: Count
    with_usage: WithUsage
    tokens: Tokens
    latency_ms: Latency


class Stats(Struct, kw_only=True, tag_field="object", tag="stats"):
    """What memory has done over time; `complete` is false where not all could be looked at."""

    since: Time
    until: Time
    bucket: Literal["day", "hour"]
    complete: bool
    counted_since: Annotated[
        Time | None,
        Meta(description="Where not all could be looked at: all after this is counted, no more."),
    ]
    totals: Figures
    series: list[Bucket]


class WhoAmI(Struct, kw_only=True, tag_field="object", tag="caller"):
    """Who asks; `tenant` is null for the administrator who has chosen none."""

    tenant: str | None
    admin: bool
    client: str | None
    profiles: list[str]
    version: str


class Tenant(Struct, kw_only=True, tag_field="object", tag="tenant"):
    """Somebody whose memory there is."""

    id: str


class TenantList(Listing[Tenant], kw_only=True):
    """A part of all tenants, sorted."""


class Skipped(Struct, kw_only=True):
    """What was there already, or not to be put there."""

    sessions: Count
    memories: Count


class Imported(Struct, kw_only=True, tag_field="object", tag="import"):
    """What was imported, or with `dry_run` would be."""

    format: Format
    dry_run: bool
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
