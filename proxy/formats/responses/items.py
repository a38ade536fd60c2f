"""One item of a conversation: what kind it is, and which call it makes or answers.  Pure.

Kinds that nobody has heard of are somebody's all the same: they are kept, in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import text_in
from proxy.formats import apart

API = "responses"
"""Whose native parts these are."""

MESSAGE = "message"
REFERENCE = "item_reference"
REASONING = "reasoning"
PICTURE = "image_generation_call"
APPROVAL = "mcp_approval_request"
APPROVED = "mcp_approval_response"

FUNCTION = "function_call"
CUSTOM = "custom_tool_call"
TOLD = (FUNCTION, CUSTOM)
"""The calls that chat completions have as well."""

PREFIXES = {MESSAGE: "msg", FUNCTION: "fc", CUSTOM: "ctc", REASONING: "rs"}
"""What ids of items begin with: upstreams look at it."""

_LOCAL_SHELL_OUTPUT = "local_shell_call_output"
"""Its ``id`` is its call's in OpenAI's own form, which has no ``call_id``."""

_OUTPUTS = {APPROVAL: APPROVED, "tool_search_call": "tool_search_output"}
"""What answers a call, where it does not have the call's name."""

_UPSTREAMS_OWN = ("shell_call_output",)
"""Outputs that the upstream may have made itself, in a container: they have ids then."""


_CALLING = (b"_call", b"approval", b"tool_search", b"\\u")
"""Of these every item that makes or answers a call has one in its JSON, an escape at the least."""


class _Head(msgspec.Struct):
    type: Any = None
    role: Any = None
    id: Any = None
    call_id: Any = None
    approval_request_id: Any = None
    execution: Any = None


_head = jsontext.reader(_Head)


class ResponseItem(NamedTuple):
    """An item.

    ``raw`` is its JSON.  ``kind`` is its type, "message" and "item_reference" also where these are
    not said, "" where it has none.  ``call`` is the id of the call that it makes, ``answers`` that
    of the one that it answers: "" where that is missing.
    """

    raw: bytes
    kind: str
    role: str = ""
    id: str = ""
    call: str | None = None
    answers: str | None = None

    @property
    def said_by_client(self) -> bool:
        """Is it a message of somebody's who is not the model?"""
        return self.kind == MESSAGE and self.role != "assistant"


class _PlainText(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    content: str


_decode_plain = msgspec.json.Decoder(_PlainText).decode


def is_plain(message: bytes) -> bool:
    """Is a chat message (JSON) an item as it stands?"""
    try:
        return bool(_decode_plain(message).content)
    except jsontext.UNREADABLE:
        return False


def may_call(raw: bytes) -> bool:
    """May an item in this JSON make or answer a call?  A quick look: False only if surely none."""
    return any([mark in raw for mark in _CALLING])


def read_item(raw: bytes) -> ResponseItem | None:
    """An item from its JSON; None if that is no object."""
    try:
        head = _head(raw)
    except jsontext.UNREADABLE:
        return None
    kind = _kind(head)
    call, answers = _calls(kind, head)
    return ResponseItem(raw, kind, text_in(head.role), text_in(head.id), call, answers)


def read_items(raws: Iterable[bytes]) -> list[ResponseItem] | None:
    """All of them, or None if one is no object."""
    items = []
    for raw in raws:
        item = read_item(raw)
        if item is None:
            return None
        items.append(item)
    return items


def grouped(items: Sequence[ResponseItem]) -> list[list[ResponseItem]]:
    """The items of each message: what a model said at once, or one that somebody else said."""
    groups: list[list[ResponseItem]] = []
    open_calls: set[str] | None = None  # of the model's message that goes on, None if none does
    for item in items:
        own = item.answers is not None and not (open_calls and _is_upstreams(item, open_calls))
        if item.said_by_client or own:
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


def parted(group: Sequence[ResponseItem]) -> list[list[ResponseItem]]:
    """What of a model's message may be messages of their own.

    An answer may have several texts, but a client that leaves out calls and results leaves answers
    side by side as well; and behind what it says for the model itself stands what the model said.
    """
    return apart.parted(group, lambda item: item.kind == MESSAGE, _may_begin)


def _may_begin(item: ResponseItem, before: ResponseItem) -> bool:
    if item.answers is not None:
        return False
    return item.kind in (MESSAGE, REASONING) or before.kind == MESSAGE


def output_of(call: str) -> str:
    """The kind of what answers a call of this kind."""
    return _OUTPUTS.get(call, f"{call}_output")


def _is_upstreams(item: ResponseItem, open_calls: set[str]) -> bool:
    return item.kind in _UPSTREAMS_OWN and bool(item.id) and item.answers in open_calls


def _kind(head: _Head) -> str:
    if isinstance(head.type, str):
        return jsontext.well_formed(head.type)
    if isinstance(head.role, str):
        return MESSAGE
    return REFERENCE if isinstance(head.id, str) else ""


def _calls(kind: str, head: _Head) -> tuple[str | None, str | None]:
    """What it makes and what it answers.  Tools of the upstream's own have no ``call_id``, or say
    that it runs them."""
    if kind in (MESSAGE, REASONING) or head.execution == "server":
        return None, None
    if kind == APPROVAL:
        return text_in(head.id), None
    if kind == APPROVED:
        return None, text_in(head.approval_request_id)
    if kind in TOLD or (kind.endswith("_call") and isinstance(head.call_id, str)):
        return text_in(head.call_id), None
    by_id = kind == _LOCAL_SHELL_OUTPUT and head.call_id is None
    answered = head.id if by_id else head.call_id
    answering = kind.endswith("_call_output") or kind in _OUTPUTS.values()
    if kind in map(output_of, TOLD) or (answering and isinstance(answered, str)):
        return None, text_in(answered)
    return None, None
