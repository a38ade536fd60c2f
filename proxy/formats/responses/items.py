"""An item of a conversation: its type, and the call that it makes or answers.  Pure.

Items of unknown types are kept in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import text_in
from proxy.formats import joined_answers

API = "responses"
"""The name of this API in native forms."""

MESSAGE = "message"
REFERENCE = "item_reference"
REASONING = "reasoning"
IMAGE_CALL = "image_generation_call"
APPROVAL = "mcp_approval_request"
APPROVAL_RESPONSE = "mcp_approval_response"

FUNCTION = "function_call"
CUSTOM = "custom_tool_call"
CHAT_CALLS = (FUNCTION, CUSTOM)
"""The types of calls that chat completions have as well."""

PREFIXES = {MESSAGE: "msg", FUNCTION: "fc", CUSTOM: "ctc", REASONING: "rs"}
"""The prefixes of items' ids, which upstreams check."""

_LOCAL_SHELL_OUTPUT = "local_shell_call_output"
"""In OpenAI's own form its ``id`` is that of its call, and it has no ``call_id``."""

_OUTPUTS = {APPROVAL: APPROVAL_RESPONSE, "tool_search_call": "tool_search_output"}
"""The types of outputs that are not named after their call."""

_SERVER_OUTPUTS = ("shell_call_output",)
"""Outputs that may be the upstream's own, from its container; those have an id."""


_CALL_SIGNS = (b"_call", b"approval", b"tool_search", b"\\u")
"""The JSON of every item that makes or answers a call has one of these, at least an escape."""


class _Head(msgspec.Struct):
    type: Any = None
    role: Any = None
    id: Any = None
    call_id: Any = None
    approval_request_id: Any = None
    execution: Any = None


_head = jsontext.struct_reader(_Head)


class ResponseItem(NamedTuple):
    """An item.

    ``raw`` is its JSON.  ``kind`` is its type, which may be omitted for a message or a reference;
    "" if it has none.  ``call`` is the id of the call that it makes, ``answers`` of the call that
    it answers: None if it does not, "" if the id is missing.
    """

    raw: bytes
    kind: str
    role: str = ""
    id: str = ""
    call: str | None = None
    answers: str | None = None

    @property
    def is_client_message(self) -> bool:
        """Whether it is a message that is not the model's."""
        return self.kind == MESSAGE and self.role != "assistant"


class _PlainText(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str


_decode_plain = msgspec.json.Decoder(_PlainText).decode


def is_plain_text(message: bytes) -> bool:
    """Whether a chat message (JSON) is a text that is also a valid item."""
    try:
        return bool(_decode_plain(message).content)
    except jsontext.UNREADABLE:
        return False


def may_call(raw: bytes) -> bool:
    """Whether an item in this JSON may make or answer a call.  Cheap; never False if one does."""
    return any([mark in raw for mark in _CALL_SIGNS])


def read_item(raw: bytes) -> ResponseItem | None:
    """Parse an item; None if it is not a JSON object."""
    try:
        head = _head(raw)
    except jsontext.UNREADABLE:
        return None
    kind = _kind(head)
    call, answers = _call_ids(kind, head)
    return ResponseItem(raw, kind, text_in(head.role), text_in(head.id), call, answers)


def read_items(raws: Iterable[bytes]) -> list[ResponseItem] | None:
    """Parse several items; None if one is not a JSON object."""
    items = []
    for raw in raws:
        item = read_item(raw)
        if item is None:
            return None
        items.append(item)
    return items


def group_by_message(items: Sequence[ResponseItem]) -> list[list[ResponseItem]]:
    """Group items into messages: adjacent items of the model are one, each other item is one."""
    groups: list[list[ResponseItem]] = []
    # The calls of the model's current message; None if there is none.
    open_calls: set[str] | None = None
    for item in items:
        by_server = open_calls is not None and _is_server_output(item, open_calls)
        if item.is_client_message or (item.answers is not None and not by_server):
            groups.append([item])
            open_calls = None
            continue
        if open_calls is None:
            groups.append([])
            open_calls = set()
        groups[-1].append(item)
        if item.call is not None:
            open_calls.add(item.call)
    return groups


def split_answers(group: Sequence[ResponseItem]) -> list[list[ResponseItem]]:
    """Split the items of a model's message into parts that may each be an answer.

    One answer may have several texts, but clients that omit calls and results, or insert texts in
    the model's name, also send several answers in a row.
    """
    return joined_answers.split_answers(group, lambda item: item.kind == MESSAGE, _may_begin)


def _may_begin(item: ResponseItem, previous: ResponseItem) -> bool:
    if item.answers is not None:
        return False
    return item.kind in (MESSAGE, REASONING) or previous.kind == MESSAGE


def output_kind(call: str) -> str:
    """The type of the output for a call of this type."""
    return _OUTPUTS.get(call, f"{call}_output")


def _is_server_output(item: ResponseItem, open_calls: set[str]) -> bool:
    return item.kind in _SERVER_OUTPUTS and bool(item.id) and item.answers in open_calls


def _kind(head: _Head) -> str:
    if isinstance(head.type, str):
        return jsontext.well_formed(head.type)
    if isinstance(head.role, str):
        return MESSAGE
    return REFERENCE if isinstance(head.id, str) else ""


def _call_ids(kind: str, head: _Head) -> tuple[str | None, str | None]:
    """The ids of the call that an item makes and of the call that it answers, None if it does not.

    Calls of the upstream's own tools have no ``call_id``, or are marked as run by the server.
    """
    if kind in (MESSAGE, REASONING) or head.execution == "server":
        return None, None
    if kind == APPROVAL:
        return text_in(head.id), None
    if kind == APPROVAL_RESPONSE:
        return None, text_in(head.approval_request_id)
    if kind in CHAT_CALLS or (kind.endswith("_call") and isinstance(head.call_id, str)):
        return text_in(head.call_id), None
    by_id = kind == _LOCAL_SHELL_OUTPUT and head.call_id is None
    answered = head.id if by_id else head.call_id
    is_output = kind.endswith("_call_output") or kind in _OUTPUTS.values()
    if kind in map(output_kind, CHAT_CALLS) or (is_output and isinstance(answered, str)):
        return None, text_in(answered)
    return None, None
