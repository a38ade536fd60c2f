"""Operations on people, their memories and profiles."""

from __future__ import annotations

from proxy.admin.memories import KINDS, MOST_DAYS, STATES
from proxy.admin.openapi.operation import JSON, NDJSON, Body, Link, Operation, Parameter, json_body
from proxy.admin.openapi.parameters import (
    AFTER,
    AFTER_SEQ,
    DRY_RUN,
    LIMIT,
    MEMORY,
    USER,
    whole,
    words,
)
from proxy.admin.openapi.shapes.people import (
    Memory,
    MemoryChange,
    MemoryDeleted,
    MemoryList,
    MemorySearch,
    NewMemory,
    PatchOperation,
    Profile,
    ProfileVersionList,
    Rollback,
    User,
    UserList,
)
from proxy.admin.openapi.shapes.sessions import Erasure
from proxy.admin.profiles import JSON_PATCH

USERS, MEMORIES, PROFILES = "Users", "Memories", "Profiles"
ALL = "/memory/v1/users"
ONE = f"{ALL}/{{user}}"
FACTS = f"{ONE}/memories"
FACT = f"{FACTS}/{{memory}}"

BY_PATH = {"user": "$request.path.user"}
MADE = {**BY_PATH, "memory": "$response.body#/id"}
WRONG = ("invalid_user_id",)
MISSING = ("invalid_user_id", "memory_not_found")

PATCH = {
    "type": "array",
    "items": {"$ref": f"#/components/schemas/{PatchOperation.__name__}"},
}

OPERATIONS = (
    Operation(
        "GET",
        ALL,
        "listUsers",
        USERS,
        "List people",
        UserList,
        "Newest activity first: who becomes active between two parts moves to the front, and the "
        "parts that follow do not have them. A part may be short though there are more: follow "
        "`next`.",
        (LIMIT, AFTER),
        links=(
            Link("getUser", {"user": "$response.body#/data/0/id"}),
            Link("listMemories", {"user": "$response.body#/data/0/id"}),
        ),
    ),
    Operation(
        "GET",
        ONE,
        "getUser",
        USERS,
        "Get a person in numbers",
        User,
        parameters=(USER,),
        errors=("invalid_user_id", "user_not_found"),
        links=(Link("listMemories", {"user": "$response.body#/id"}),),
    ),
    Operation(
        "DELETE",
        ONE,
        "deleteUser",
        USERS,
        "Erase a person",
        Erasure,
        "Everything, for good, with a receipt, and what is written meanwhile as well: conditions "
        "are compared when it begins. Of nobody known that is nothing, and no error. "
        "`dry_run=true` only counts.",
        (USER, DRY_RUN),
        errors=WRONG,
        conditional=True,
    ),
    Operation(
        "GET",
        f"{ONE}/export",
        "exportUser",
        USERS,
        "Export everything of a person",
        {"type": "string"},
        "One JSON object a line; `POST /memory/v1/import` takes it.",
        (USER,),
        media=NDJSON,
        errors=WRONG,
    ),
    Operation(
        "GET",
        FACTS,
        "listMemories",
        MEMORIES,
        "List what is remembered of a person",
        MemoryList,
        "Facts, then standing wishes, then episodes, each newest first.",
        (
            USER,
            Parameter("kind", "query", "Which kinds, with commas.", words(*KINDS), example="fact"),
            Parameter("state", "query", "Which states, with commas.", words(*STATES)),
            Parameter(
                "stale_days",
                "query",
                "Only facts that nobody has confirmed for so many days.",
                whole(0, MOST_DAYS),
            ),
            LIMIT,
            AFTER,
        ),
        errors=WRONG,
        links=(
            Link("getMemory", {**BY_PATH, "memory": "$response.body#/data/0/id"}),
            Link("deleteMemory", {**BY_PATH, "memory": "$response.body#/data/0/id"}),
        ),
    ),
    Operation(
        "POST",
        FACTS,
        "createMemory",
        MEMORIES,
        "Add a fact",
        Memory,
        parameters=(USER,),
        body=json_body(NewMemory, allergy={"text": "Is allergic to peanuts."}),
        status=201,
        errors=MISSING,
        idempotent=True,
        links=(
            Link("getMemory", MADE),
            Link("updateMemory", MADE, {"text": "Is allergic to all nuts."}),
            Link("deleteMemory", MADE),
            Link("getUser", BY_PATH),
        ),
        founds=True,
    ),
    Operation(
        "POST",
        f"{FACTS}/search",
        "searchMemories",
        MEMORIES,
        "Search what is remembered of a person",
        MemoryList,
        "Facts, standing wishes, episodes and passages by one score from 0 to 1, best first.",
        (USER,),
        json_body(MemorySearch, question={"query": "What must not be in the food?"}),
        errors=WRONG,
    ),
    Operation(
        "GET",
        FACT,
        "getMemory",
        MEMORIES,
        "Get a memory",
        Memory,
        parameters=(USER, MEMORY),
        errors=MISSING,
    ),
    Operation(
        "PATCH",
        FACT,
        "updateMemory",
        MEMORIES,
        "Correct a fact",
        Memory,
        "Or release it from quarantine, with `state`. Only facts can be changed.",
        (USER, MEMORY),
        json_body(MemoryChange, correction={"text": "Is allergic to all nuts."}),
        errors=MISSING,
        conditional=True,
    ),
    Operation(
        "DELETE",
        FACT,
        "deleteMemory",
        MEMORIES,
        "Remove a memory",
        MemoryDeleted,
        "What was said stays in history; a wish is never pinned again.",
        (USER, MEMORY),
        errors=MISSING,
        conditional=True,
    ),
    Operation(
        "GET",
        f"{ONE}/profile",
        "getProfile",
        PROFILES,
        "Get a person's profile",
        Profile,
        "An empty document where nothing is known.",
        (USER,),
        errors=WRONG,
    ),
    Operation(
        "PATCH",
        f"{ONE}/profile",
        "updateProfile",
        PROFILES,
        "Change a person's profile",
        Profile,
        "A JSON Merge Patch (RFC 7396), or with its content type a JSON Patch (RFC 6902); all of "
        "it or nothing. The document has to fit the operator's schema.",
        (
            USER,
            Parameter("profile", "query", "The profile of the configuration with the schema."),
        ),
        Body(
            {
                JSON: {"type": "object"},
                "application/merge-patch+json": {"type": "object"},
                JSON_PATCH: PATCH,
            },
            examples={"city": {"city": "Lisbon"}},
        ),
        errors=("invalid_user_id", "unknown_profile"),
        conditional=True,
        links=(Link("getProfile", BY_PATH), Link("listProfileVersions", BY_PATH)),
        founds=True,
    ),
    Operation(
        "GET",
        f"{ONE}/profile/versions",
        "listProfileVersions",
        PROFILES,
        "List the versions of a profile",
        ProfileVersionList,
        "By number, ascending.",
        (USER, LIMIT, AFTER_SEQ),
        errors=WRONG,
        links=(Link("rollBackProfile", BY_PATH, {"version": "$response.body#/data/0/version"}),),
    ),
    Operation(
        "POST",
        f"{ONE}/profile/rollback",
        "rollBackProfile",
        PROFILES,
        "Put a profile back to an earlier version",
        Profile,
        "That document once more, as a new version.",
        (USER,),
        json_body(Rollback, first={"version": 1}),
        errors=("invalid_user_id", "version_not_found"),
        conditional=True,
    ),
)
