"""Operations on files, and on everything at once."""

from __future__ import annotations

from proxy.admin.importing import CONFLICTS, FORMATS
from proxy.admin.openapi.operation import JSON, NDJSON, Body, Operation, Parameter
from proxy.admin.openapi.parameters import OF_USER, SESSION, whole
from proxy.admin.openapi.shapes.overview import Imported, Stats, TenantList, Usage, WhoAmI

FILES, OVERVIEW = "Import and export", "Overview"
ROOT = "/memory/v1"

DAY = {"type": "string", "format": "date"}

PORTABLE = (
    Operation(
        "GET",
        f"{ROOT}/export",
        "exportAll",
        FILES,
        "Export everything",
        {"type": "string"},
        "One JSON object a line.",
        (OF_USER,),
        media=NDJSON,
        errors=("invalid_user_id",),
    ),
    Operation(
        "POST",
        f"{ROOT}/import",
        "importFile",
        FILES,
        "Import a file",
        Imported,
        "An export of this proxy, or conversations from elsewhere. Importing the same file twice "
        "changes nothing. What was complete before something broken stays imported.",
        (
            Parameter(
                "format",
                "query",
                "What the file is.",
                {"enum": ["auto", *FORMATS], "default": "auto"},
                example="openai",
            ),
            Parameter("session", "query", "The session of a conversation.", SESSION.schema),
            Parameter("user", "query", "Whose conversations they are.", OF_USER.schema),
            Parameter(
                "conflict",
                "query",
                "What to do about a session that is there already.",
                {"enum": [*CONFLICTS], "default": CONFLICTS[0]},
            ),
        ),
        Body(
            {JSON: {"type": ["object", "array"]}, NDJSON: {"type": "string"}},
            examples={
                "openai": {
                    "messages": [
                        {"role": "user", "content": "Good morning."},
                        {"role": "assistant", "content": "Good morning!"},
                    ]
                }
            },
        ),
        errors=(
            "invalid_import",
            "invalid_session_id",
            "invalid_user_id",
            "session_owner_mismatch",
            "session_exists",
        ),
        founds=True,
    ),
)

AT_ONCE = (
    Operation(
        "GET",
        f"{ROOT}/stats",
        "getStats",
        OVERVIEW,
        "Get figures over time",
        Stats,
        "Of the exchanges of the newest sessions; `complete` is false where there are more than "
        "are looked at.",
        (
            Parameter(
                "days", "query", "So many days back; with hours at most 31.", whole(1, 400, 30)
            ),
            Parameter(
                "bucket", "query", "How long a bucket is.", {"enum": ["day", "hour"]}, example="day"
            ),
            OF_USER,
        ),
        errors=("invalid_user_id",),
    ),
    Operation(
        "GET",
        f"{ROOT}/usage",
        "getUsage",
        OVERVIEW,
        "Get the costs of background work",
        Usage,
        "By day and feature, both days included; by default the last 30 days. At most 400 days.",
        (
            Parameter("from", "query", "The first day.", DAY),
            Parameter("to", "query", "The last day.", DAY),
        ),
    ),
    Operation(
        "GET",
        f"{ROOT}/whoami",
        "whoAmI",
        OVERVIEW,
        "See who you are",
        WhoAmI,
        "The tenant of the key, and the profiles that it may name.",
    ),
    Operation(
        "GET",
        f"{ROOT}/tenants",
        "listTenants",
        OVERVIEW,
        "List tenants",
        TenantList,
        "For the administrator alone.",
        admin=True,
    ),
    Operation(
        "GET",
        f"{ROOT}/openapi.json",
        "getOpenApi",
        OVERVIEW,
        "Get this document",
        {"type": "object"},
        open=True,
    ),
)

OPERATIONS = (*PORTABLE, *AT_ONCE)
