"""The parameters of the memory API: their descriptions for the document, and their readers.

Raises ProxyError 400 with ``param`` naming what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from proxy import errors as refusals
from proxy.errors import ProxyError
from proxy.memory.ids import MAX_ID, is_id
from proxy.memory.model import SessionKey
from proxy.memory_api.call import Call, Reader
from proxy.memory_api.errors import (
    Failure,
    exchange_not_found,
    invalid_session_id,
    invalid_user_id,
    memory_not_found,
    message_not_found,
    proposal_not_found,
    proposal_outdated,
    session_not_found,
)
from proxy.memory_api.fields import APPLICATION as APPLICATION_NAME
from proxy.memory_api.fields import DEFAULT_LIMIT, ID_PATTERN, MAX_LIMIT, invalid, unknown_cursor
from proxy.memory_api.openapi.operation import Parameter
from proxy.memory_api.shapes.items import PLAIN
from proxy.recall.index import Owner

_DIGITS = re.compile(r"[0-9]{1,15}")

ID = {"type": "string", "minLength": 1, "maxLength": MAX_ID, "pattern": ID_PATTERN}
TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean", "default": False}
LABEL = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": PLAIN}


def words(*known: str) -> dict[str, Any]:
    """The schema of a list of these words, separated by commas."""
    one_word = f"(?:{'|'.join(known)})"
    return {"type": "string", "pattern": f"^{one_word}(?:,{one_word})*$"}


def integer_schema(minimum: int, maximum: int, default: int | None = None) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return schema if default is None else {**schema, "default": default}


def in_path(
    name: str,
    description: str,
    schema: dict[str, Any],
    example: str,
    read: Reader,
    *errors: Failure,
) -> Parameter:
    return Parameter(name, "path", description, schema, True, example, read, errors)


def segment(call: Call, name: str) -> bytes:
    """The decoded segment of the path with this name."""
    return unquote_to_bytes(call.request.path_params[name])


def flag(name: str, description: str) -> Parameter:
    """True or false in the query; false by default."""

    def read(call: Call) -> bool:
        text = call.request.query_params.get(name, "false")
        if text not in ("true", "false"):
            raise invalid(f"{name} must be true or false.", name)
        return text == "true"

    return Parameter(name, "query", description, FLAG, read=read)


def several(name: str, known: Sequence[str], default: Sequence[str]) -> Reader:
    """A list separated by commas, without duplicates."""

    def read(call: Call) -> Sequence[str]:
        text = call.request.query_params.get(name)
        words = text.split(",") if text is not None else default
        if any(word not in known for word in words):
            raise invalid(f"{name} must be one or several of: {', '.join(known)}.", name)
        return tuple(dict.fromkeys(words))

    return read


def one_of(name: str, known: Sequence[str]) -> Callable[[Call], str]:
    """One of these words; by default the first."""

    def read(call: Call) -> str:
        word = call.request.query_params.get(name, known[0])
        if word not in known:
            raise invalid(f"{name} must be one of: {', '.join(known)}.", name)
        return word

    return read


def an_id(name: str, error: Callable[[str], ProxyError]) -> Reader:
    """The id of a session or a user in the query, None if it is missing."""

    def read(call: Call) -> str | None:
        value = call.request.query_params.get(name)
        if value is not None and not is_id(value):
            raise error(name)
        return value

    return read


def _id_in_path(name: str, example: str, *errors: Failure) -> Parameter:
    """An id that is not validated: an invalid one is not found."""

    def read(call: Call) -> str:
        return segment(call, name).decode("utf-8", "replace")

    return in_path(name, f"The {name}'s id.", TEXT, example, read, *errors)


def _session(call: Call) -> SessionKey:
    value = segment(call, "session").decode("latin-1")
    if not is_id(value):
        raise refusals.invalid_session_id("The session in the path")
    return SessionKey(call.tenant, value)


def _owner(call: Call) -> Owner:
    value = segment(call, "user").decode("latin-1")
    if not is_id(value):
        raise refusals.invalid_user_id("The user in the path")
    return Owner(call.tenant, user=value)


def _application(call: Call) -> str:
    name = segment(call, "application").decode("utf-8", "replace")
    if not re.fullmatch(APPLICATION_NAME, name):
        raise invalid("An application has 1 to 64 characters: A-Z a-z 0-9 _ . -", "application")
    return name


def _limit(call: Call) -> int:
    text = call.request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if not _DIGITS.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}.", "limit")
    return int(text)


def _after_seq(call: Call) -> int:
    text = call.request.query_params.get("after", "0")
    if not _DIGITS.fullmatch(text):
        raise unknown_cursor()
    return int(text)


SESSION = in_path(
    "session",
    "The session's id, percent-encoded.",
    ID,
    "trip-to-lisbon",
    _session,
    invalid_session_id,
    session_not_found,
)

TENANT = Parameter(
    "tenant",
    "query",
    "Whose memory the administrator means. All others may name their own alone.",
    example="anonymous",
)
AFTER = Parameter(
    "after",
    "query",
    "`next` of the part before.",
    read=lambda call: call.request.query_params.get("after"),
)
OF_USER = Parameter(
    "user",
    "query",
    "Only what is of this person.",
    ID,
    example="ada",
    read=an_id("user", refusals.invalid_user_id),
    errors=(invalid_user_id,),
)
DRY_RUN = flag("dry_run", "Only count what would be erased.")

NAMESPACE = Parameter(
    "namespace",
    "query",
    "The labels of the namespace, one parameter for each.",
    {"type": "array", "items": LABEL, "minItems": 1, "maxItems": 10},
    required=True,
    example=["recipes", "soups"],
)
KEY = Parameter("key", "query", "The item's key.", LABEL, required=True, example="gazpacho")

IF_MATCH = Parameter(
    "If-Match", "header", "Only if the resource has one of these entity tags; else 412."
)
IF_NONE_MATCH = Parameter(
    "If-None-Match", "header", "Only if the resource has none of these entity tags; else 304."
)
IF_NONE_MATCH_CHANGE = Parameter(
    "If-None-Match",
    "header",
    "Only if the resource has none of these entity tags, with `*` if there is none; else 412.",
)
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "The same key with the same body within 24 h answers the same objects and creates nothing.",
    {"type": "string", "pattern": "^[!-~]{1,255}$"},
)

SessionAt = Annotated[SessionKey, SESSION]
"""The session in the path, of the caller's tenant."""

PersonAt = Annotated[
    Owner, in_path("user", "The person's id, percent-encoded.", ID, "ada", _owner, invalid_user_id)
]
MessageAt = Annotated[str, _id_in_path("message", "im_1.0", message_not_found)]
ExchangeAt = Annotated[str, _id_in_path("exchange", "im_1", exchange_not_found)]
MemoryAt = Annotated[str, _id_in_path("memory", "fact_1", memory_not_found)]
ProposalAt = Annotated[str, _id_in_path("proposal", "1", proposal_not_found, proposal_outdated)]
ApplicationAt = Annotated[
    str,
    in_path(
        "application",
        "The application's name.",
        {"type": "string", "pattern": f"^{APPLICATION_NAME}$"},
        "support",
        _application,
    ),
]

Limit = Annotated[
    int,
    Parameter(
        "limit",
        "query",
        "The most that one part has.",
        integer_schema(1, MAX_LIMIT, DEFAULT_LIMIT),
        read=_limit,
    ),
]
After = Annotated[str | None, AFTER]
AfterSeq = Annotated[
    int,
    Parameter(
        "after",
        "query",
        "`next` of the part before: a number.",
        {"type": "string", "pattern": "^[0-9]{1,15}$"},
        read=_after_seq,
    ),
]
"""The last number of the page before, 0 for the first page."""

OfUser = Annotated[str | None, OF_USER]
DryRun = Annotated[bool, DRY_RUN]
