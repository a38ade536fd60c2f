"""A request for a response with what memory adds to it, and what becomes of what it refers to.

Pure.  In front of an upstream that keeps the state nothing goes into ``input``; what is recalled
may stand in ``instructions``, which are of one request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from proxy.chat import jsontext
from proxy.chat.blocks import behind_system, block_message, with_block
from proxy.chat.cachemarks import without_marks
from proxy.chat.message import ChatMessage, Piece, last_user
from proxy.chat.native import told_in_chat
from proxy.chat.request import NULL, ChatRequest, field_of
from proxy.formats.format import Addition
from proxy.formats.native import NOTHING, native_of
from proxy.formats.responses.chat import items_of
from proxy.formats.responses.items import (
    API,
    FUNCTION,
    REFERENCE,
    TOLD,
    ResponseItem,
    is_plain,
    may_call,
    output_of,
    read_item,
    read_items,
)
from proxy.formats.responses.reading import CONVERSATION, INPUT, PREVIOUS
from proxy.formats.responses.resent import without_resent

INSTRUCTIONS = "instructions"
TEXT = "input_text"
STORE = "store"
ENCRYPTED = "reasoning.encrypted_content"

_REASONING_MODEL = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)")
"""OpenAI's models that think; others refuse to be asked for encrypted reasoning."""


def with_addition(request: ChatRequest, addition: Addition, *, stores: bool) -> bytes:
    """The request's body; ``stores``: it is one that the upstream might store."""
    if request.state.elsewhere:
        return jsontext.join_fields(_instructed(request, addition))
    stored = addition.system
    system = list(_system_items(stored)) if stored else request.system
    head = behind_system(system, addition.head, TEXT, separate=addition.separate)
    tail = _before_last_user(addition.messages, addition.tail, separate=addition.separate)
    fields = {**request.fields, INPUT: jsontext.join_items([*head, *tail])}
    return jsontext.join_fields(_unstored(fields, request.model) if stores else fields)


def expanded(body: bytes, parts: Mapping[str, bytes], *, begins: bool) -> bytes:
    """The body with the items that it refers to, as far as they are known; ``begins``: and with no
    response before it.  The rest keeps its bytes."""
    fields = jsontext.fields(body)
    if begins:
        fields.pop(PREVIOUS, None)
        fields = _listing(fields)
    if parts:
        items = map(read_item, jsontext.items(fields[INPUT]))
        raws = (_expanded(item, parts) for item in items if item is not None)
        fields[INPUT] = jsontext.join_items([raw for raw in raws if raw != NOTHING])
    return jsontext.join_fields(fields)


def stateless(body: bytes) -> bytes:
    """The body as an upstream takes it that keeps nothing: it is asked for what it is to say."""
    fields = jsontext.fields(body)
    kept = {key: raw for key, raw in fields.items() if key not in (PREVIOUS, CONVERSATION)}
    if len(kept) < len(fields):
        kept = _listing(kept)
    if field_of(kept, STORE) is True:
        kept[STORE] = b"false"
    return body if kept == fields else jsontext.join_fields(kept)


def _listing(fields: Mapping[str, bytes]) -> dict[str, bytes]:
    """The fields with a list for what is asked: a name may have stood instead of it."""
    return {**fields, INPUT: b"[]"} if fields.get(INPUT, NULL) == NULL else dict(fields)


def renamed(response: bytes, fields: Mapping[str, bytes]) -> bytes:
    """A response (JSON) with other values (JSON) in some of its fields; the rest keeps its bytes.

    Raises UNREADABLE where it is no object.
    """
    return jsontext.join_fields({**jsontext.fields(response), **fields})


def renamed_event(event: bytes, fields: Mapping[str, bytes]) -> bytes:
    """The same of the response in a stream's event (JSON), in those that have one."""
    if b'"response"' not in event:
        return event
    found = jsontext.fields(event)
    if not found.get("response", b"").startswith(b"{"):
        return event
    return jsontext.join_fields({**found, "response": renamed(found["response"], fields)})


def _expanded(item: ResponseItem, parts: Mapping[str, bytes]) -> bytes:
    return parts.get(item.id, item.raw) if item.kind == REFERENCE else item.raw


def _instructed(request: ChatRequest, addition: Addition) -> dict[str, bytes]:
    blocks = "\n".join(filter(None, (addition.head, addition.tail)))
    said = request.instructions
    text = f"{said}\n\n{blocks}" if said else blocks
    return {**request.fields, INSTRUCTIONS: jsontext.encode(text)}


def _unstored(fields: dict[str, bytes], model: str | None) -> dict[str, bytes]:
    """What is stored can be seen, and comes back: memory is not stored unless a client says so.

    Without a store reasoning goes on only where it is encrypted.
    """
    if field_of(fields, STORE) is not None or field_of(fields, "background") is True:
        return fields
    fields = {**fields, STORE: b"false"}
    include = field_of(fields, "include")
    asked = include if isinstance(include, list) else []
    thinks = field_of(fields, "reasoning") or _REASONING_MODEL.match(
        (model or "").rpartition("/")[2]
    )
    if not thinks or ENCRYPTED in asked or not (include is None or asked == include):
        return fields
    return {**fields, "include": jsontext.encode([*asked, ENCRYPTED])}


def _system_items(stored: bytes) -> Iterable[bytes]:
    for message in jsontext.items(without_marks(stored)):
        yield from _converted(message, {})


def _before_last_user(messages: Sequence[Piece], blocks: str, *, separate: bool) -> list[bytes]:
    sent = without_resent(messages, _sent(messages))
    at = last_user(messages) if blocks else None
    if at is None:
        return [raw for raws in sent for raw in raws]
    if separate:
        sent[at] = [block_message(blocks), *sent[at]]
    else:
        sent[at] = [with_block(sent[at][0], blocks, TEXT), *sent[at][1:]]
    return [raw for raws in sent for raw in raws]


def _sent(messages: Sequence[Piece]) -> list[list[bytes]]:
    """The items of each message.  A call and its output are of one kind, whoever said them."""
    talk = [_talk(piece) for piece in messages]
    found = [None if said else _items(each) for each, said in zip(messages, talk, strict=True)]
    outputs = {i.answers: i.kind for items in found for i in items or () if i.answers is not None}
    kinds: dict[str, str] = {}
    sent = []
    for piece, items, said in zip(messages, found, talk, strict=True):
        if said:
            sent.append(said)
            continue
        if items is None or not (isinstance(piece, ChatMessage) or _fits(items, outputs, kinds)):
            raw = piece.raw if isinstance(piece, ChatMessage) else piece
            items = read_items(_converted(raw, kinds)) or []
        kinds |= {item.call: item.kind for item in items if item.call is not None}
        sent.append([item.raw for item in items])
    return sent


def _talk(piece: Piece) -> list[bytes]:
    """The items of a stored message that has nothing to do with calls: as they came.  By far the
    most do not; none where that is to be looked into."""
    if isinstance(piece, ChatMessage):
        return []
    if is_plain(piece):
        return [piece]
    return [] if may_call(piece) else list(native_of(piece, API) or ())


def _items(piece: Piece) -> list[ResponseItem] | None:
    """The items of a client's message, or those that a stored one was; None where it was none."""
    if isinstance(piece, ChatMessage):
        return read_items(jsontext.items(b"[" + piece.raw + b"]"))
    parts = native_of(piece, API)
    return read_items(parts) if parts else None


def _fits(
    items: Sequence[ResponseItem], outputs: Mapping[str, str], kinds: Mapping[str, str]
) -> bool:
    """May stored items go as they came?  Not if the other half of a call has another kind now."""
    calls = (i for i in items if i.call is not None and i.kind not in TOLD)
    if any(outputs.get(i.call or "", FUNCTION) != output_of(i.kind) for i in calls):
        return False
    alone = items[0] if len(items) == 1 else None
    if alone is None or alone.answers is None:
        return True
    return output_of(kinds.get(alone.answers, FUNCTION)) == alone.kind


def _converted(message: bytes, kinds: Mapping[str, str]) -> list[bytes]:
    return items_of(told_in_chat(message), kinds)
