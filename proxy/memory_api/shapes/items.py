"""Items of one's own."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Self, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from proxy.memory_api.fields import MAX_LIMIT, Count, Json, RawJson, Time, error_text, integer_field
from proxy.memory_api.items.params import (
    KEY,
    LABELS,
    MAX_LABELS,
    MAX_NAME,
    MAX_TTL_SECONDS,
    MAX_VALUE_BYTES,
    NAMESPACE,
)

PLAIN = r"^[^\u0000-\u001f\u007f-\u009f]+$"
"""A text without control characters."""

FILTER = error_text("must be a JSON object that is not nested too deeply.")
VALUE = error_text(
    f"must be a JSON object of at most {MAX_VALUE_BYTES} bytes that is not nested too deeply.",
    MAX_VALUE_BYTES,
)

Label = Annotated[str, Meta(min_length=1, max_length=MAX_NAME, pattern=PLAIN)]
Namespace = Annotated[
    list[Label],
    Meta(min_length=1, max_length=MAX_LABELS, examples=[["recipes", "soups"]], extra=NAMESPACE),
]
Prefix = Annotated[list[Label], Meta(max_length=MAX_LABELS, extra=LABELS)]
Limit = Annotated[int, integer_field(1, MAX_LIMIT)]
Offset = Annotated[int, integer_field(0, 2**53)]

T = TypeVar("T")


class Item(Struct, kw_only=True, tag_field="object", tag="item"):
    """An item of one's own, or, read-only, one of what was learned."""

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
    key: Annotated[Label, Meta(examples=["gazpacho"], extra=KEY)]
    value: Annotated[RawJson, Meta(examples=[{"serves": 4}], extra=VALUE)]
    ttl: Annotated[int, integer_field(0, MAX_TTL_SECONDS, "Seconds; 0: for ever.")] | None = None
    if_version: (
        Annotated[int, integer_field(0, 2**53, "Only in place of this version; 0: of none.")] | None
    ) = None


class ItemPlace(Struct, kw_only=True):
    """Where an item is."""

    namespace: Namespace
    key: Annotated[Label, Meta(extra=KEY)]


class ItemSearch(Struct, kw_only=True):
    """Which items, in which order, and which part of them."""

    namespace_prefix: Prefix | None = None
    query: Annotated[
        str | None,
        Meta(description="Words to look for in the values.", extra=error_text("must be a string.")),
    ] = None
    filter: Annotated[RawJson | None, Meta(examples=[{"serves": {"$gte": 2}}], extra=FILTER)] = None
    limit: Limit | None = None
    offset: Offset | None = None


class NamespaceSearch(Struct, kw_only=True):
    """Which namespaces; `*` stands for any label."""

    prefix: Prefix | None = None
    suffix: Prefix | None = None
    max_depth: Annotated[int, integer_field(1, MAX_LABELS)] | None = None
    limit: Limit | None = None
    offset: Offset | None = None


class Part(Struct, Generic[T], kw_only=True):
    """A part of a list that is counted through."""

    object: Literal["list"]
    data: list[T]
    has_more: bool
    next: Annotated[int | None, Meta(description="The offset of the next part.")]

    @classmethod
    def of(cls, found: list[T], offset: int, limit: int) -> Self:
        """A part from its items and one more, if there is."""
        more = len(found) > limit
        next = offset + limit if more else None
        return cls(object="list", data=found[:limit], has_more=more, next=next)


class ItemList(Part[Item], kw_only=True):
    """Items by place, or for a query the best first."""


class NamespaceList(Part[list[str]], kw_only=True):
    """Namespaces that have items."""


class ItemDeleted(Struct, kw_only=True, tag_field="object", tag="item.deleted"):
    """What is removed."""

    namespace: list[str]
    key: str
    deleted: bool
