"""The parameters of the memory API."""

from __future__ import annotations

from typing import Any

from proxy.admin.asking import DEFAULT_LIMIT, MAX_LIMIT
from proxy.admin.openapi.operation import Parameter
from proxy.admin.openapi.shapes.fields import ID_PATTERN
from proxy.admin.openapi.shapes.items import PLAIN

ID = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": ID_PATTERN}
TEXT = {"type": "string", "minLength": 1}
FLAG = {"type": "boolean", "default": False}
LABEL = {"type": "string", "minLength": 1, "maxLength": 256, "pattern": PLAIN}


def words(*known: str) -> dict[str, Any]:
    """Several of these, with commas between them."""
    each = f"(?:{'|'.join(known)})"
    return {"type": "string", "pattern": f"^{each}(?:,{each})*$"}


def whole(least: int, most: int, default: int | None = None) -> dict[str, Any]:
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return schema if default is None else {**schema, "default": default}


def in_path(name: str, description: str, schema: dict[str, Any], example: str) -> Parameter:
    return Parameter(name, "path", description, schema, required=True, example=example)


SESSION = in_path("session", "The session's id, percent-encoded.", ID, "trip-to-lisbon")
USER = in_path("user", "The person's id, percent-encoded.", ID, "ada")
MESSAGE = in_path("message", "The message's id.", TEXT, "im_1.0")
EXCHANGE = in_path("exchange", "The exchange's id.", TEXT, "im_1")
MEMORY = in_path("memory", "The memory's id.", TEXT, "fact_1")
PROPOSAL = in_path("proposal", "The proposal's id.", TEXT, "1")
APPLICATION = in_path(
    "application",
    "The application's name.",
    {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
    "support",
)

TENANT = Parameter(
    "tenant",
    "query",
    "Whose memory the administrator means. All others may name their own alone.",
    example="anonymous",
)
LIMIT = Parameter(
    "limit", "query", "The most that one part has.", whole(1, MAX_LIMIT, DEFAULT_LIMIT)
)
AFTER = Parameter("after", "query", "`next` of the part before.")
AFTER_SEQ = Parameter(
    "after",
    "query",
    "`next` of the part before: a number.",
    {"type": "string", "pattern": "^[0-9]{1,15}$"},
)
OF_USER = Parameter("user", "query", "Only what is of this person.", ID, example="ada")
DRY_RUN = Parameter("dry_run", "query", "Only count what would be erased.", FLAG)

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
