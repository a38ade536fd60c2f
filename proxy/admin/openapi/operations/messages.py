"""Operations on messages and exchanges."""

from __future__ import annotations

from proxy.admin.openapi.operation import Link, Operation, Parameter, json_body
from proxy.admin.openapi.parameters import AFTER_SEQ, EXCHANGE, LIMIT, MESSAGE, SESSION, words
from proxy.admin.openapi.shapes.messages import (
    Exchange,
    ExchangeList,
    Feedback,
    Message,
    MessageContent,
    MessageDeleted,
    MessageList,
    NewFeedback,
    NewMessages,
    WholeMessage,
)
from proxy.admin.openapi.shapes.sessions import Session

TAG = "Messages"
SESSION_PATH = "/memory/v1/sessions/{session}"
ALL = f"{SESSION_PATH}/messages"
ONE = f"{ALL}/{{message}}"
EXCHANGES = f"{SESSION_PATH}/exchanges"

BY_PATH = {"session": "$request.path.session"}
FIRST = {**BY_PATH, "message": "$response.body#/data/0/id"}
SAME = {**BY_PATH, "message": "$request.path.message"}
MISSING = ("invalid_session_id", "session_not_found", "message_not_found")

OPERATIONS = (
    Operation(
        "GET",
        ALL,
        "listMessages",
        TAG,
        "List messages",
        MessageList,
        "By seq, ascending. `after` is a seq, so a client may jump.",
        (
            SESSION,
            Parameter(
                "state",
                "query",
                "Which: the active log, or branches that were left as well.",
                {**words("active", "superseded"), "default": "active"},
                example="active,superseded",
            ),
            LIMIT,
            AFTER_SEQ,
        ),
        errors=("invalid_session_id", "session_not_found"),
        links=(
            Link("getMessage", FIRST),
            Link("updateMessage", FIRST, {"content": "What is worth seeing in Porto?"}),
            Link("activateMessage", FIRST),
            Link("deleteMessage", FIRST),
            Link("sendFeedback", {**BY_PATH, "message": "$response.body#/data/1/id"}),
            Link("getExchange", {**BY_PATH, "exchange": "$response.body#/data/0/exchange_id"}),
            Link("listMessages", {**BY_PATH, "after": "$response.body#/next"}),
        ),
    ),
    Operation(
        "POST",
        ALL,
        "importMessages",
        TAG,
        "Append messages",
        MessageList,
        "In one exchange, or not at all: each must be a message that upstreams can read. A session "
        "begins with its first message. Leading system messages become the remembered ones.",
        (SESSION,),
        json_body(
            NewMessages,
            conversation={
                "user": "ada",
                "messages": [
                    {"role": "user", "content": "What is worth seeing in Lisbon?"},
                    {"role": "assistant", "content": "The Alfama, early in the morning."},
                ],
            },
        ),
        errors=("invalid_session_id", "invalid_user_id", "session_owner_mismatch", *MISSING[1:]),
        idempotent=True,
        links=(
            Link("getSession", BY_PATH),
            Link("listMessages", BY_PATH),
            Link("listExchanges", BY_PATH),
            Link("getMessage", FIRST),
            Link("deleteMessage", FIRST),
            Link("forkSession", BY_PATH, {"id": "trip-to-porto"}),
            Link("rewindSession", BY_PATH, {"turns": 1}),
            Link("exportSession", BY_PATH),
            Link("deleteSession", BY_PATH),
        ),
        founds=True,
    ),
    Operation(
        "GET",
        ONE,
        "getMessage",
        TAG,
        "Get a message",
        Message,
        parameters=(SESSION, MESSAGE),
        errors=MISSING,
        links=(Link("deleteMessage", SAME), Link("getFeedback", SAME)),
    ),
    Operation(
        "PATCH",
        ONE,
        "updateMessage",
        TAG,
        "Edit a message in place",
        Message,
        "Give either `content` or the whole `message`. The old words are not kept anywhere.",
        (SESSION, MESSAGE),
        json_body(
            MessageContent, WholeMessage, words={"content": "What is worth seeing in Porto?"}
        ),
        errors=MISSING,
        conditional=True,
        links=(Link("getMessage", SAME),),
    ),
    Operation(
        "DELETE",
        ONE,
        "deleteMessage",
        TAG,
        "Remove a message",
        MessageDeleted,
        "With calls all their results go as well.",
        (SESSION, MESSAGE),
        errors=MISSING,
        conditional=True,
    ),
    Operation(
        "POST",
        f"{ONE}/activate",
        "activateMessage",
        TAG,
        "Make a branch the active one",
        Session,
        "The branch that the message belongs to comes back; what stood in its place is "
        "superseded. `If-Match` takes the tag of the session.",
        (SESSION, MESSAGE),
        errors=MISSING,
        conditional=True,
    ),
    Operation(
        "GET",
        f"{ONE}/feedback",
        "getFeedback",
        TAG,
        "Get the feedback on an answer",
        Feedback,
        parameters=(SESSION, MESSAGE),
        errors=(*MISSING, "feedback_not_found"),
    ),
    Operation(
        "POST",
        f"{ONE}/feedback",
        "sendFeedback",
        TAG,
        "Judge an answer",
        Feedback,
        "Of a message the last word counts.",
        (SESSION, MESSAGE),
        json_body(NewFeedback, praise={"score": 1, "comment": "Short and right."}),
        errors=MISSING,
        links=(Link("getFeedback", SAME),),
    ),
    Operation(
        "GET",
        EXCHANGES,
        "listExchanges",
        TAG,
        "List exchanges",
        ExchangeList,
        "The newest first.",
        (SESSION, LIMIT, AFTER_SEQ),
        errors=("invalid_session_id", "session_not_found"),
        links=(Link("getExchange", {**BY_PATH, "exchange": "$response.body#/data/0/id"}),),
    ),
    Operation(
        "GET",
        f"{EXCHANGES}/{{exchange}}",
        "getExchange",
        TAG,
        "See what memory did for an exchange",
        Exchange,
        "Which messages, facts and passages stood in the prompt, by id; never their text.",
        (SESSION, EXCHANGE),
        errors=("invalid_session_id", "session_not_found", "exchange_not_found"),
    ),
)
