"""A request for a response, read into messages.  Pure.

Whose the state is decides what memory may do.  With ``previous_response_id`` or ``conversation`` it
is the upstream's: what stands in ``input`` would be stored there and come back with each turn.  So
is a ``prompt`` without ``input``: what is asked stands in it, and a window behind that would end
with what has been answered before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.message import SYSTEM_ROLES, ChatMessage, read_message, text_of
from proxy.chat.request import (
    MAX_TEXT,
    NULL,
    ChatRequest,
    State,
    Unread,
    count_of,
    field_of,
    model_of,
    read_fields,
)
from proxy.errors import RawHeaders
from proxy.formats.apart import runs_of
from proxy.formats.native import with_native
from proxy.formats.responses.chat import is_told_whole, parts_sent, said_of, sendable
from proxy.formats.responses.items import (
    API,
    REFERENCE,
    ResponseItem,
    grouped,
    is_plain,
    parted,
    read_items,
)

INPUT = "input"
PREVIOUS = "previous_response_id"
CONVERSATION = "conversation"
PROMPT = "prompt"
"""A prompt that the upstream keeps, by its id, with values for its variables."""

SIDE_SOURCES = ("memory_consolidation", "system")
"""What Codex says of the threads that it begins itself."""

SIDE_HEADER = b"x-openai-memgen-request"

TURN_METADATA = b"x-codex-turn-metadata"
"""What Codex says of a request, as JSON in a header and once more in ``client_metadata``."""

_DATA_URL = b"data:"

TURN = "turn"
"""Its kind of request that is one; others are compactions, for one."""


def read_request(body: bytes, max_inline_media_bytes: int) -> ChatRequest | Unread:
    """A request from its body, or why there is none.  Takes long for a large one."""
    found = read_fields(body, INPUT, _split, (PREVIOUS, CONVERSATION, PROMPT))
    if not isinstance(found, tuple):
        return found
    fields, raws = found
    items = read_items(raws)
    if items is None:
        return "invalid_body"
    messages = [_group(group, max_inline_media_bytes) for group in grouped(items)]
    if _has_more_text(messages):
        return "too_much_text"
    references = tuple(item.id for item in items if item.kind == REFERENCE)
    request = _request(fields, messages, references)
    if not items and _asks_by_prompt(body):
        request = replace(request, state=replace(request.state, elsewhere=True))
    if request.state.elsewhere:  # nothing will be put between them
        return replace(request, fields=jsontext.fields(body))
    return request


def _asks_by_prompt(body: bytes) -> bool:
    """An empty list is what the conversation before it comes into: see ``expanded``."""
    fields = jsontext.fields(body)
    return fields.get(INPUT, NULL) == NULL and fields.get(PROMPT, NULL) != NULL


def _has_more_text(messages: Sequence[ChatMessage]) -> bool:
    """Are there more than MAX_TEXT characters?  Media in a text are told where need be."""
    if sum(len(message.text) for message in messages) <= MAX_TEXT:
        return False
    texts = (text_of(each.legible) if each.media_in_text else each.text for each in messages)
    return sum(map(len, texts)) > MAX_TEXT


def _group(group: Sequence[ResponseItem], limit: int) -> ChatMessage:
    message = message_of(group, limit)
    if len(group) < 2:
        return message
    return replace(message, apart=parts_of, pieces=len(group))


def parts_of(message: ChatMessage) -> list[list[ChatMessage]]:
    """See Apart."""
    items = read_items(jsontext.items(b"[" + message.raw + b"]")) or []
    read = partial(message_of, max_inline_media_bytes=message.max_inline_media_bytes)
    return runs_of(parted(items), read)


def message_of(group: Sequence[ResponseItem], max_inline_media_bytes: int) -> ChatMessage:
    """The chat message that a group of items is.  Its ``raw`` are the items, with commas."""
    if len(group) == 1 and is_plain(group[0].raw):
        return _read(group[0].raw, max_inline_media_bytes)
    said = said_of(group)
    plain = jsontext.encode(said)
    message = _read(plain, max_inline_media_bytes)
    kept, media_in_text = message.said or plain, False
    if message.said is None and not is_told_whole(group, said):
        kept = _with_items(plain, group, max_inline_media_bytes)
        media_in_text = message.answers is not None and _DATA_URL in plain
    raw = b",".join(item.raw for item in group)
    return replace(message, raw=raw, said=kept, media_in_text=media_in_text)


def _read(message: bytes, max_inline_media_bytes: int) -> ChatMessage:
    found = read_message(message, max_inline_media_bytes)
    assert found is not None  # it is an object
    return found


def _with_items(said: bytes, group: Sequence[ResponseItem], limit: int) -> bytes:
    """Beside what it says; large media are not kept, nor is what cannot be told without them."""
    parts = parts_sent(group, sendable(group, limit))
    return with_native(said, API, parts) if parts else said


def _split(listed: bytes) -> list[bytes]:
    """A text is what a user says.  Raises UNREADABLE."""
    if listed.startswith(b'"'):
        return [b'{"role":"user","content":' + listed + b"}"]
    return jsontext.items(listed)


def _request(
    fields: dict[str, bytes], messages: list[ChatMessage], references: tuple[str, ...]
) -> ChatRequest:
    leading = tuple(takewhile(lambda message: message.role in SYSTEM_ROLES, messages))
    instructions = field_of(fields, "instructions")
    return ChatRequest(
        fields=fields,
        leading=leading,
        messages=tuple(messages[len(leading) :]),
        model=model_of(fields),
        stream=field_of(fields, "stream") is True,
        n=1,
        max_output=count_of(field_of(fields, "max_output_tokens")),
        instructions=instructions if isinstance(instructions, str) else "",
        system_is_its_own=bool(instructions),
        state=state_of(fields, references),
    )


def state_of(fields: dict[str, bytes], references: tuple[str, ...] = ()) -> State:
    """What a request's fields say of its conversation; ``references`` are those in its input."""
    previous, conversation = field_of(fields, PREVIOUS), field_of(fields, CONVERSATION)
    elsewhere = previous is not None or conversation is not None
    return State(
        elsewhere=elsewhere,
        instructs=elsewhere,
        previous=previous if isinstance(previous, str) else None,
        references=references,
        conversation=conversation_id(conversation),
        background=field_of(fields, "background") is True,
        complete=TURN_METADATA.decode() in _metadata(fields),
        stores=field_of(fields, "store") is not False,
    )


def conversation_id(said: object) -> str | None:
    """The id in what a request says of its conversation: a text, or an object with an ``id``.

    "" for what is neither, None where it says nothing.
    """
    if said is None or isinstance(said, str):
        return said
    id = said.get("id") if isinstance(said, dict) else None
    return id if isinstance(id, str) else ""


def is_side_work(request: ChatRequest, headers: RawHeaders) -> bool:
    """Does Codex ask it for itself, and not for a person: a summary, say, or notes of its own?"""
    fields = dict(headers)
    if SIDE_HEADER in fields:
        return True
    told = _metadata(request.fields)
    within = told.get(TURN_METADATA.decode())
    packed = within.encode() if isinstance(within, str) else fields.get(TURN_METADATA, b"null")
    return _is_side(told) or _is_side(field_of({"": packed}, ""))


def _metadata(fields: dict[str, bytes]) -> dict[str, object]:
    found = field_of(fields, "client_metadata")
    return found if isinstance(found, dict) else {}


def _is_side(told: object) -> bool:
    if not isinstance(told, dict):
        return False
    return told.get("thread_source") in SIDE_SOURCES or told.get("request_kind", TURN) != TURN
