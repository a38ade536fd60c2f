"""Operations on instructions, items of one's own, files, and on everything at once."""

from __future__ import annotations

from proxy.admin.importing import CONFLICTS, FORMATS
from proxy.admin.openapi.operation import JSON, NDJSON, Body, Link, Operation, Parameter, json_body
from proxy.admin.openapi.parameters import (
    AFTER,
    AFTER_SEQ,
    APPLICATION,
    KEY,
    LIMIT,
    NAMESPACE,
    OF_USER,
    PROPOSAL,
    SESSION,
    whole,
)
from proxy.admin.openapi.shapes.others import (
    Imported,
    Instructions,
    InstructionsText,
    InstructionsVersionList,
    Item,
    ItemDeleted,
    ItemList,
    ItemSearch,
    NamespaceList,
    NamespaceSearch,
    NewItem,
    Proposal,
    ProposalList,
    Reflection,
    Stats,
    TenantList,
    Usage,
    WhoAmI,
)
from proxy.admin.openapi.shapes.people import Rollback

INSTRUCTIONS, STORE, FILES, OVERVIEW = "Instructions", "Store", "Import and export", "Overview"
ROOT = "/memory/v1"
OF_APP = f"{ROOT}/instructions/{{application}}"
PROPOSED = f"{OF_APP}/proposals/{{proposal}}"
ITEMS = f"{ROOT}/store/items"

SAME = {"application": "$request.path.application"}
PUT = {"namespace": "$response.body#/namespace", "key": "$response.body#/key"}
DAY = {"type": "string", "format": "date"}

LEARNED = (
    Operation(
        "GET",
        OF_APP,
        "getInstructions",
        INSTRUCTIONS,
        "Get an application's instructions",
        Instructions,
        "An empty text where there is none.",
        (APPLICATION,),
    ),
    Operation(
        "PUT",
        OF_APP,
        "setInstructions",
        INSTRUCTIONS,
        "Write an application's instructions",
        Instructions,
        "The new version.",
        (APPLICATION,),
        json_body(InstructionsText, language={"text": "Answer in the user's own language."}),
        conditional=True,
        links=(Link("getInstructions", SAME), Link("rollBackInstructions", SAME, {"version": 1})),
    ),
    Operation(
        "GET",
        f"{OF_APP}/versions",
        "listInstructionsVersions",
        INSTRUCTIONS,
        "List the versions of instructions",
        InstructionsVersionList,
        "By number, ascending.",
        (APPLICATION, LIMIT, AFTER_SEQ),
    ),
    Operation(
        "POST",
        f"{OF_APP}/rollback",
        "rollBackInstructions",
        INSTRUCTIONS,
        "Put instructions back to an earlier version",
        Instructions,
        "That text once more, as a new version.",
        (APPLICATION,),
        json_body(Rollback, first={"version": 1}),
        errors=("version_not_found",),
        conditional=True,
    ),
    Operation(
        "GET",
        f"{OF_APP}/proposals",
        "listProposals",
        INSTRUCTIONS,
        "List proposals",
        ProposalList,
        "The oldest first.",
        (APPLICATION, LIMIT, AFTER),
    ),
    Operation(
        "POST",
        f"{PROPOSED}/approve",
        "approveProposal",
        INSTRUCTIONS,
        "Put a proposal into force",
        Proposal,
        parameters=(APPLICATION, PROPOSAL),
        errors=("proposal_not_found", "proposal_outdated"),
    ),
    Operation(
        "POST",
        f"{PROPOSED}/reject",
        "rejectProposal",
        INSTRUCTIONS,
        "Turn a proposal down",
        Proposal,
        parameters=(APPLICATION, PROPOSAL),
        errors=("proposal_not_found", "proposal_outdated"),
    ),
    Operation(
        "POST",
        f"{OF_APP}/reflect",
        "reflectOnFeedback",
        INSTRUCTIONS,
        "Ask for a proposal",
        Reflection,
        "Made of the feedback there is, soon.",
        (APPLICATION,),
        status=202,
        errors=("application_not_found",),
    ),
)

KEPT = (
    Operation(
        "PUT",
        ITEMS,
        "putItem",
        STORE,
        "Put an item",
        Item,
        "New, or in place of what is there; `if_version` and `If-Match` bind it to what was read.",
        body=json_body(
            NewItem,
            soup={"namespace": ["recipes", "soups"], "key": "gazpacho", "value": {"serves": 4}},
        ),
        errors=("invalid_user_id", "item_not_found", "version_conflict", "reserved_namespace"),
        conditional=True,
        links=(Link("getItem", PUT), Link("deleteItem", PUT)),
    ),
    Operation(
        "GET",
        ITEMS,
        "getItem",
        STORE,
        "Get an item",
        Item,
        parameters=(NAMESPACE, KEY),
        errors=("invalid_user_id", "item_not_found"),
    ),
    Operation(
        "DELETE",
        ITEMS,
        "deleteItem",
        STORE,
        "Delete an item",
        ItemDeleted,
        "Its place may come as a JSON body as well, for names that are too long for a URL.",
        (NAMESPACE, KEY),
        errors=(
            "invalid_user_id",
            "item_not_found",
            "version_conflict",
            "reserved_namespace",
            "request_timeout",
            "request_too_large",
        ),
        conditional=True,
    ),
    Operation(
        "POST",
        f"{ITEMS}/search",
        "searchItems",
        STORE,
        "Search items",
        ItemList,
        "Below a prefix: by place, or for a query the best first.",
        body=json_body(ItemSearch, recipes={"namespace_prefix": ["recipes"], "query": "gazpacho"}),
        errors=("invalid_user_id",),
    ),
    Operation(
        "POST",
        f"{ROOT}/store/namespaces",
        "listNamespaces",
        STORE,
        "List namespaces",
        NamespaceList,
        "Those that have items.",
        body=json_body(NamespaceSearch, recipes={"prefix": ["recipes"]}),
        errors=("invalid_user_id",),
    ),
)

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
            Parameter("days", "query", "So many days back; with hours at most 31.", whole(1, 31)),
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

OPERATIONS = (*LEARNED, *KEPT, *PORTABLE, *AT_ONCE)
