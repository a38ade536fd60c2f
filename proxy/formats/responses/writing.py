"""Writes memory's additions into a request for a response, and resolves its references.

Pure.  If the upstream stores the conversation, nothing is added to ``input``; memory blocks go into
``instructions``, which apply to one request only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.blocks import append_to_system, block_message, with_block
from proxy.chat.cachemarks import without_marks
from proxy.chat.message import ChatMessage, Piece, last_user_index
from proxy.chat.native import as_chat_message
from proxy.chat.request import NULL, ChatRequest, field_of
from proxy.formats.format import Addition
from proxy.formats.native import OMITTED, native_of
from proxy.formats.responses.chat import items_from_chat
from proxy.formats.responses.items import (
    API,
    CHAT_CALLS,
    FUNCTION,
    REFERENCE,
    ResponseItem,
    is_plain_text,
    may_call,
    output_kind,
    read_item,
    read_items,
)
from proxy.formats.responses.reading import CONVERSATION, INPUT, PREVIOUS
from proxy.formats.responses.repeated_items import without_resent

INSTRUCTIONS = "instructions"
TEXT = "input_text"
STORE = "store"
ENCRYPTED = "reasoning.encrypted_content"

_REASONING_MODEL = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)")
"""OpenAI's reasoning models; others refuse a request for encrypted reasoning."""


def with_addition(request: ChatRequest, addition: Addition, *, stores: bool) -> bytes:
    """The request's body; ``stores``: the upstream may store such a request."""
    if request.state.kept_upstream:
        return jsontext.join_fields(_with_instructions(request, addition))
    stored = addition.system
    system = list(_system_items(stored)) if stored else request.system
    head = append_to_system(system, addition.head, TEXT, separate=addition.separate)
    tail = _before_last_user(addition.messages, addition.tail, separate=addition.separate)
    fields = {**request.fields, INPUT: jsontext.join_items([*head, *tail])}
    return jsontext.join_fields(_with_store_off(fields, request.model) if stores else fields)


def expand_references(body: bytes, parts: Mapping[str, bytes], *, detach: bool) -> bytes:
    """See ReferringFormat.expand: the body with references replaced by ``parts`` (JSON by id).

    ``detach``: without ``previous_response_id``.  All else keeps its bytes.
    """
    fields = jsontext.fields(body)
    if detach:
        fields.pop(PREVIOUS, None)
        fields = _with_input_list(fields)
    if parts:
        items = map(read_item, jsontext.items(fields[INPUT]))
        raws = (_expand_item(item, parts) for item in items if item is not None)
        fields[INPUT] = jsontext.join_items([raw for raw in raws if raw != OMITTED])
    return jsontext.join_fields(fields)


def without_state(body: bytes) -> bytes:
    """The body without references to state, for an upstream that has none."""
    fields = jsontext.fields(body)
    fields_left = {key: raw for key, raw in fields.items() if key not in (PREVIOUS, CONVERSATION)}
    if len(fields_left) < len(fields):
        fields_left = _with_input_list(fields_left)
    if field_of(fields_left, STORE) is True:
        fields_left[STORE] = b"false"
    return body if fields_left == fields else jsontext.join_fields(fields_left)


def _with_input_list(fields: Mapping[str, bytes]) -> dict[str, bytes]:
    """The fields with an empty input if there is none, since a reference may replace the input."""
    return {**fields, INPUT: b"[]"} if fields.get(INPUT, NULL) == NULL else dict(fields)


def with_fields(response: bytes, fields: Mapping[str, bytes]) -> bytes:
    """The response (JSON) with some fields (JSON) replaced; the rest keeps its bytes.  Raises
    UNREADABLE if it is not an object."""
    return jsontext.join_fields({**jsontext.fields(response), **fields})


def event_with_fields(event: bytes, fields: Mapping[str, bytes]) -> bytes:
    """The event (JSON) with fields of its response replaced; unchanged if it has none."""
    if b'"response"' not in event:
        return event
    members = jsontext.fields(event)
    if not members.get("response", b"").startswith(b"{"):
        return event
    return jsontext.join_fields({**members, "response": with_fields(members["response"], fields)})


def _expand_item(item: ResponseItem, parts: Mapping[str, bytes]) -> bytes:
    return parts.get(item.id, item.raw) if item.kind == REFERENCE else item.raw


def _with_instructions(request: ChatRequest, addition: Addition) -> dict[str, bytes]:
    blocks = "\n".join(filter(None, (addition.head, addition.tail)))
    own_text = request.instructions
    text = f"{own_text}\n\n{blocks}" if own_text else blocks
    return {**request.fields, INSTRUCTIONS: jsontext.encode(text)}


def _with_store_off(fields: dict[str, bytes], model: str | None) -> dict[str, bytes]:
    """The fields with ``store`` off unless the client has set it, so that the upstream does not
    store injected memory.

    Without storage, reasoning models must be asked for encrypted reasoning, which is sent back.
    """
    if field_of(fields, STORE) is not None or field_of(fields, "background") is True:
        return fields
    fields = {**fields, STORE: b"false"}
    include = field_of(fields, "include")
    included = include if isinstance(include, list) else []
    name = (model or "").rpartition("/")[2]
    reasons = field_of(fields, "reasoning") or _REASONING_MODEL.match(name)
    if not reasons or ENCRYPTED in included or not (include is None or included == include):
        return fields
    return {**fields, "include": jsontext.encode([*included, ENCRYPTED])}


def _system_items(stored: bytes) -> Iterable[bytes]:
    for message in jsontext.items(without_marks(stored)):
        yield from _converted(message, {})


def _before_last_user(messages: Sequence[Piece], blocks: str, *, separate: bool) -> list[bytes]:
    items = without_resent(messages, _items_by_message(messages))
    at = last_user_index(messages) if blocks else None
    if at is None:
        return [raw for raws in items for raw in raws]
    if separate:
        items[at] = [block_message(blocks), *items[at]]
    else:
        items[at] = [with_block(items[at][0], blocks, TEXT), *items[at][1:]]
    return [raw for raws in items for raw in raws]


def _items_by_message(messages: Sequence[Piece]) -> list[list[bytes]]:
    """The items (JSON) of each message; the types of a call and of its output correspond."""
    without_calls = [_items_without_calls(piece) for piece in messages]
    parsed = [
        None if unchanged else _items(piece)
        for piece, unchanged in zip(messages, without_calls, strict=True)
    ]
    outputs = {i.answers: i.kind for items in parsed for i in items or () if i.answers is not None}
    kinds: dict[str, str] = {}
    sent = []
    for piece, items, unchanged in zip(messages, parsed, without_calls, strict=True):
        if unchanged:
            sent.append(unchanged)
            continue
        if items is None or not (
            isinstance(piece, ChatMessage) or _can_send_unchanged(items, outputs, kinds)
        ):
            raw = piece.raw if isinstance(piece, ChatMessage) else piece
            items = read_items(_converted(raw, kinds)) or []
        kinds |= {item.call: item.kind for item in items if item.call is not None}
        sent.append([item.raw for item in items])
    return sent


def _items_without_calls(piece: Piece) -> list[bytes]:
    """The items of a stored message that has no calls, unchanged; [] if it may have some.

    A fast path: most messages have none.
    """
    if isinstance(piece, ChatMessage):
        return []
    if is_plain_text(piece):
        return [piece]
    return [] if may_call(piece) else list(native_of(piece, API) or ())


def _items(piece: Piece) -> list[ResponseItem] | None:
    """The items of a client's message, or the native form of a stored one; None without one."""
    if isinstance(piece, ChatMessage):
        return read_items(jsontext.items(b"[" + piece.raw + b"]"))
    parts = native_of(piece, API)
    return read_items(parts) if parts else None


def _can_send_unchanged(
    items: Sequence[ResponseItem], outputs: Mapping[str, str], kinds: Mapping[str, str]
) -> bool:
    """Whether stored items can be sent unchanged: not if the type of a call would differ from that
    of its output."""
    calls = (i for i in items if i.call is not None and i.kind not in CHAT_CALLS)
    if any(outputs.get(i.call or "", FUNCTION) != output_kind(i.kind) for i in calls):
        return False
    alone = items[0] if len(items) == 1 else None
    if alone is None or alone.answers is None:
        return True
    return output_kind(kinds.get(alone.answers, FUNCTION)) == alone.kind


def _converted(message: bytes, kinds: Mapping[str, str]) -> list[bytes]:
    return items_from_chat(as_chat_message(message), kinds)
