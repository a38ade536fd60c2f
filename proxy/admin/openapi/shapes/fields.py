"""Kinds of fields that many objects of the API share: what they hold, and their limits."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from proxy.admin.session_edit import LONGEST_TITLE, LONGEST_TTL

ID_PATTERN = r"^(?:[!-\-/-~][!-~]*|\.[!-\-/-~][!-~]*|\.\.[!-~]+)$"
"""Visible ASCII, and neither "." nor ".."; see ``asking.is_id``."""

SOMETHING = r"[^\s\u001c-\u001f\u0085]"
"""A text that is not all white space."""

VISIBLE = r"[^\s\u0000-\u001f\u007f-\u009f]"
"""A text that is not all white space and control characters."""

Time = Annotated[float, Meta(description="Unix seconds.", examples=[1767225600.0])]
Count = Annotated[int, Meta(ge=0)]
Seq = Annotated[int, Meta(ge=0, description="A place in the session's history, from 1.")]

SessionId = Annotated[
    str, Meta(min_length=1, max_length=256, pattern=ID_PATTERN, examples=["trip-to-lisbon"])
]
UserId = Annotated[str, Meta(min_length=1, max_length=256, pattern=ID_PATTERN, examples=["ada"])]

Title = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_TITLE, examples=["A weekend in Lisbon"])
]
Ttl = Annotated[
    int,
    Meta(
        ge=0,
        le=LONGEST_TTL,
        description="Seconds without activity after which the session goes; 0 is for ever.",
    ),
]

Json = dict[str, Any]
"""A JSON object of somebody else's making."""


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of OpenAI's chat API, as it is on the wire; fields that are not known are kept."""

    role: Annotated[str, Meta(examples=["user"])]
    content: Annotated[
        Any,
        Meta(description="Text, or a list of parts.", examples=["What is worth seeing in Lisbon?"]),
    ] = None


class Listing(msgspec.Struct, kw_only=True):
    """A part of a list."""

    object: Annotated[str, Meta(pattern="^list$")]
    has_more: Annotated[bool, Meta(description="Is there more behind this part?")]
    next: Annotated[str | None, Meta(description="The cursor of the next part: `?after=`.")]
