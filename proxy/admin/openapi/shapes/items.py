"""Items of one's own."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.admin.item_asking import LONGEST_NAME, LONGEST_TTL, MOST_LABELS
from proxy.admin.openapi.shapes.fields import Count, Json, Time

PLAIN = r"^[^\u0000-\u001f\u007f-\u009f]+$"
"""A text without control characters."""

Label = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=PLAIN)]
Namespace = Annotated[
    list[Label], Meta(min_length=1, max_length=MOST_LABELS, examples=[["recipes", "soups"]])
]
Prefix = Annotated[list[Label], Meta(max_length=MOST_LABELS)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Offset = Annotated[int, Meta(ge=0, le=2**53)]


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
