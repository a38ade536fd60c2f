"""Operations on sessions."""

from __future__ import annotations

from proxy.admin.openapi.operation import NDJSON, Link, Operation, Parameter, json_body
from proxy.admin.openapi.parameters import (
    AFTER,
    AFTER_SEQ,
    DRY_RUN,
    FLAG,
    LIMIT,
    OF_USER,
    SESSION,
)
from proxy.admin.openapi.shapes.messages import Context, ContextRequest
from proxy.admin.openapi.shapes.sessions import (
    Forget,
    ForgetReceipt,
    Fork,
    RewindTo,
    RewindTurns,
    Session,
    SessionChange,
    SessionErasure,
    SessionList,
    SummaryList,
)

TAG = "Sessions"
ALL = "/memory/v1/sessions"
ONE = f"{ALL}/{{session}}"

BY_ID = {"session": "$response.body#/id"}
BY_PATH = {"session": "$request.path.session"}
NEWEST = {"session": "$response.body#/data/0/id"}

OPERATIONS = (
    Operation(
        "GET",
        ALL,
        "listSessions",
        TAG,
        "List sessions",
        SessionList,
        "Newest activity first: what becomes active between two parts moves to the front, and the "
        "parts that follow do not have it. With `query` a part may be short, or empty, and have "
        "more behind it: follow `next` while `has_more` is true.",
        (
            OF_USER,
            Parameter("query", "query", "Is in the id, the title or the user; case is ignored."),
            Parameter("preview", "query", "Add to each session how it begins.", FLAG),
            LIMIT,
            AFTER,
        ),
        errors=("invalid_user_id",),
        links=(
            Link("getSession", NEWEST),
            Link("listMessages", NEWEST),
            Link("listSessions", {"after": "$response.body#/next"}),
        ),
    ),
    Operation(
        "GET",
        ONE,
        "getSession",
        TAG,
        "Get a session",
        Session,
        parameters=(SESSION,),
        errors=("invalid_session_id", "session_not_found"),
        links=(Link("listMessages", BY_ID), Link("deleteSession", BY_ID)),
    ),
    Operation(
        "PATCH",
        ONE,
        "updateSession",
        TAG,
        "Change a session",
        Session,
        "All changes are made, or, where one cannot be made, none.",
        (SESSION,),
        json_body(
            SessionChange,
            title={"title": "A weekend in Lisbon"},
            metadata={"metadata": {"channel": "web"}},
        ),
        errors=("invalid_session_id", "session_not_found"),
        conditional=True,
        links=(Link("getSession", BY_ID),),
    ),
    Operation(
        "DELETE",
        ONE,
        "deleteSession",
        TAG,
        "Erase a session",
        SessionErasure,
        "With all that it owns, for good, and with what is written meanwhile: conditions are "
        "compared when it begins. `dry_run=true` only counts.",
        (SESSION, DRY_RUN),
        errors=("invalid_session_id", "session_not_found"),
        conditional=True,
    ),
    Operation(
        "POST",
        f"{ONE}/fork",
        "forkSession",
        TAG,
        "Go on from a session in a new one",
        Session,
        "The new session has everything up to and including `until`, and the same user.",
        (SESSION,),
        json_body(Fork, copy={"id": "trip-to-porto", "title": "What if Porto?"}),
        status=201,
        errors=("invalid_session_id", "session_not_found", "message_not_found", "session_exists"),
        idempotent=True,
        links=(
            Link("getSession", BY_ID),
            Link("listMessages", BY_ID),
            Link("updateSession", BY_ID, {"title": "A fork"}),
            Link("deleteSession", BY_ID),
        ),
    ),
    Operation(
        "POST",
        f"{ONE}/rewind",
        "rewindSession",
        TAG,
        "Take turns back",
        Session,
        "The messages stay in history as superseded. Give either `turns` or `to`.",
        (SESSION,),
        json_body(RewindTurns, RewindTo, turns={"turns": 1}),
        errors=("invalid_session_id", "session_not_found", "message_not_found"),
        conditional=True,
        links=(Link("listMessages", BY_ID), Link("getSession", BY_ID)),
    ),
    Operation(
        "POST",
        f"{ONE}/context",
        "previewContext",
        TAG,
        "See what a request would become",
        Context,
        "Exactly the messages that would be sent, and why. Changes nothing.",
        (SESSION,),
        json_body(
            ContextRequest, question={"messages": [{"role": "user", "content": "And on Sunday?"}]}
        ),
        errors=(
            "invalid_session_id",
            "session_not_found",
            "unknown_profile",
            "profile_not_allowed",
        ),
    ),
    Operation(
        "GET",
        f"{ONE}/summaries",
        "listSummaries",
        TAG,
        "List the versions of a summary",
        SummaryList,
        "The newest first: it is in force.",
        (SESSION, LIMIT, AFTER_SEQ),
        errors=("invalid_session_id", "session_not_found"),
    ),
    Operation(
        "POST",
        f"{ONE}/summary/rebuild",
        "rebuildSummary",
        TAG,
        "Make the summary anew",
        Session,
        "All versions are forgotten, and one is written from the history soon.",
        (SESSION,),
        status=202,
        errors=("invalid_session_id", "session_not_found", "summary_disabled"),
    ),
    Operation(
        "POST",
        f"{ONE}/forget",
        "forgetLearned",
        TAG,
        "Forget what a session taught",
        ForgetReceipt,
        "History stays; what others taught as well stays without this source.",
        (
            SESSION,
            Parameter(
                "user", "query", "Whose memory it is, where the session is gone.", OF_USER.schema
            ),
        ),
        json_body(Forget, required=False, look={"dry_run": True}),
        errors=("invalid_session_id", "invalid_user_id", "session_not_found"),
    ),
    Operation(
        "GET",
        f"{ONE}/export",
        "exportSession",
        TAG,
        "Export a session",
        {"type": "string"},
        "One JSON object a line; `POST /memory/v1/import` takes it.",
        (SESSION,),
        media=NDJSON,
        errors=("invalid_session_id", "session_not_found"),
    ),
)
