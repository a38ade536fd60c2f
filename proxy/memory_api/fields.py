"""Types that objects and requests of the API share: ids, times, cursors, and their limits."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, Generic, Self, TypeVar, cast

import msgspec
from msgspec import Meta

from proxy.errors import ProxyError, invalid_session_id, invalid_user_id
from proxy.memory.archive import MAX_TITLE
from proxy.memory.ids import MAX_ID
from proxy.memory_api.errors import invalid_value
from proxy.settings.memory import MAX_TTL_SECONDS

T = TypeVar("T")

ID_PATTERN = r"^(?:[!-\-/-~][!-~]*|\.[!-\-/-~][!-~]*|\.\.[!-~]+)$"
"""Visible ASCII, and neither "." nor "..": what a user or a session may be called."""

APPLICATION = r"[A-Za-z0-9_.-]{1,64}"

MAX_LIMIT, DEFAULT_LIMIT = 1000, 100
"""Entries of a page of a list."""

NOT_BLANK = r"[^\s\u001c-\u001f\u0085]"
"""A text that is not all white space."""

VISIBLE = r"[^\s\u0000-\u001f\u007f-\u009f]"
"""A text that is not all white space and control characters."""

NO_TIME = 1e11
"""Seconds; a number from here on, thousands of years ahead, is milliseconds by mistake."""

Time = Annotated[float, Meta(description="Unix seconds.", examples=[1767225600.0])]
Count = Annotated[int, Meta(ge=0)]
Seq = Annotated[int, Meta(ge=0, description="A place in the session's history, from 1.")]

Json = dict[str, Any]
"""Any JSON object."""


RawJson = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
"""The same, as its bytes."""

REFUSAL, MAX_BYTES, RAW = "refusal", "largest", "kept"


def invalid(message: str, param: str | None = None) -> ProxyError:
    """The error of an invalid value in the body or the query."""
    return invalid_value(message, param)


def error_extra(error: Callable[[str], ProxyError]) -> dict[str, Any]:
    """For ``Meta(extra=…)``: makes the error for an invalid value, from the field's name."""
    return {REFUSAL: error}


def error_text(sentence: str, max_bytes: int | None = None) -> dict[str, Any]:
    """The same in words that follow the field's name: "must be …"; ``max_bytes``: bytes of JSON."""
    extra = error_extra(lambda name: invalid(f"{name} {sentence}", name))
    return extra if max_bytes is None else {**extra, MAX_BYTES: max_bytes}


def raw_json(sentence: str) -> Meta:
    """A value whose bytes are wanted: a body has a ``msgspec.Raw`` there, to be looked at by hand.

    ``sentence`` is for where it is missing.
    """
    return Meta(extra={RAW: True, **error_text(sentence)})


def bytes_of(value: object) -> bytes:
    """The bytes of a ``raw_json`` value."""
    return bytes(cast(msgspec.Raw, value))


def integer_field(minimum: int, maximum: int, description: str | None = None) -> Meta:
    """The declaration of an integer from ``minimum`` to ``maximum``."""
    extra = error_text(f"must be a whole number from {minimum} to {maximum}.")
    return Meta(ge=minimum, le=maximum, description=description, extra=extra)


def _id(example: str, error: Callable[[str], ProxyError]) -> Meta:
    return Meta(
        min_length=1,
        max_length=MAX_ID,
        pattern=ID_PATTERN,
        examples=[example],
        extra=error_extra(error),
    )


SessionId = Annotated[str, _id("trip-to-lisbon", invalid_session_id)]
UserId = Annotated[str, _id("ada", invalid_user_id)]

Title = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_TITLE,
        examples=["A weekend in Lisbon"],
        extra=error_text(f"must have 1 to {MAX_TITLE} characters; null removes it."),
    ),
]
Ttl = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_TTL_SECONDS,
        description="Seconds without activity after which the session goes; 0 is for ever.",
        extra=error_text(f"must be seconds from 0, for ever, to {MAX_TTL_SECONDS}."),
    ),
]


def unknown_cursor() -> ProxyError:
    return invalid("after must be a cursor that this list gave out as next.", "after")


def encode_cursor(cursor: str) -> str:
    """A cursor encoded for URLs."""
    return base64.urlsafe_b64encode(cursor.encode()).rstrip(b"=").decode("ascii")


def decode_cursor(encode_cursor: str) -> str:
    """The inverse of ``encode_cursor``.  Raises ValueError."""
    padded = encode_cursor + "=" * (-len(encode_cursor) % 4)
    try:
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode()
    except binascii.Error as error:
        raise ValueError("not a cursor of this list") from error


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of OpenAI's chat API, as it is on the wire; fields that are not known are kept."""

    role: Annotated[str, Meta(examples=["user"])]
    content: Annotated[
        Any,
        Meta(description="Text, or a list of parts.", examples=["What is worth seeing in Lisbon?"]),
    ] = None


class Listing(msgspec.Struct, Generic[T], kw_only=True):
    """A part of a list."""

    object: Annotated[str, Meta(pattern="^list$")]
    data: list[T]
    has_more: Annotated[bool, Meta(description="Is there more behind this part?")]
    next: Annotated[str | None, Meta(description="The cursor of the next part: `?after=`.")]

    @classmethod
    def part(cls, data: list[T], after: str | None = None) -> Self:
        """``after`` is the cursor of the next part."""
        return cls(object="list", data=data, has_more=after is not None, next=after)
