"""Parses a request for a response into messages.  Pure.

With ``previous_response_id`` or ``conversation`` the upstream stores the conversation: anything
injected into ``input`` would be stored too and repeated with each turn, so nothing is.  Nor is it
with a ``prompt`` and no ``input``: the question is in the prompt, and injected messages would come
after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.message import ChatMessage, read_message, text_of
from proxy.chat.request import (
    MAX_TEXT,
    NULL,
    ChatRequest,
    State,
    UnreadReason,
    field_of,
    positive_int,
    read_fields,
    request_of,
)
from proxy.errors import RawHeaders
from proxy.formats.joined_answers import candidate_messages
from proxy.formats.native import with_native
from proxy.formats.responses.chat import chat_from_items, is_lossless, sendable_items, sent_parts
from proxy.formats.responses.items import (
    API,
    REFERENCE,
    ResponseItem,
    group_by_message,
    is_plain_text,
    read_items,
    split_answers,
)

INPUT = "input"
PREVIOUS = "previous_response_id"
CONVERSATION = "conversation"
PROMPT = "prompt"
"""The id of a prompt template that the upstream stores, with values for its variables."""

SIDE_SOURCES = ("memory_consolidation", "system")
"""The sources of threads that Codex begins itself."""

SIDE_HEADER = b"x-openai-memgen-request"

TURN_METADATA = b"x-codex-turn-metadata"
"""Codex' description of a request: JSON, as a header and in ``client_metadata``."""

_DATA_URL = b"data:"

TURN = "turn"
"""Codex' ``request_kind`` of a turn of the conversation; others are compactions, for example."""


def read_request(body: bytes, max_inline_media_bytes: int) -> ChatRequest | UnreadReason:
    """Parse a body; returns why if it cannot be read.  Slow for large ones: use a thread."""
    result = read_fields(body, INPUT, _input_items, (PREVIOUS, CONVERSATION, PROMPT))
    if not isinstance(result, tuple):
        return result
    fields, raws = result
    items = read_items(raws)
    if items is None:
        return "invalid_body"
    messages = [
        _splittable_message(group, max_inline_media_bytes) for group in group_by_message(items)
    ]
    if _has_too_much_text(messages):
        return "too_much_text"
    references = tuple(item.id for item in items if item.kind == REFERENCE)
    request = request_of(fields, messages, positive_int(field_of(fields, "max_output_tokens")))
    instructions = field_of(fields, "instructions")
    request = replace(
        request,
        instructions=instructions if isinstance(instructions, str) else "",
        has_own_system=bool(instructions),
        state=state_of(fields, references),
    )
    if not items and _has_prompt_only(body):
        request = replace(request, state=replace(request.state, kept_upstream=True))
    if request.state.kept_upstream:  # nothing will be injected: the input keeps its bytes
        return replace(request, fields=jsontext.fields(body))
    return request


def _has_prompt_only(body: bytes) -> bool:
    """Whether the question is in a prompt template.  An empty list as input does not count: that
    is what ``expand_references`` leaves, for the conversation to be injected into."""
    fields = jsontext.fields(body)
    return fields.get(INPUT, NULL) == NULL and fields.get(PROMPT, NULL) != NULL


def _has_too_much_text(messages: Sequence[ChatMessage]) -> bool:
    """Whether there are more than ``MAX_TEXT`` characters, not counting media in texts."""
    if sum(len(message.text) for message in messages) <= MAX_TEXT:
        return False
    texts = (text_of(each.clean_json) if each.media_in_text else each.text for each in messages)
    return sum(map(len, texts)) > MAX_TEXT


def _splittable_message(group: Sequence[ResponseItem], limit: int) -> ChatMessage:
    message = message_of(group, limit)
    if len(group) < 2:
        return message
    return replace(message, splitter=split_message, max_parts=len(group))


def split_message(message: ChatMessage) -> list[list[ChatMessage]]:
    """See Splitter."""
    items = read_items(jsontext.items(b"[" + message.raw + b"]")) or []
    read = partial(message_of, max_inline_media_bytes=message.max_inline_media_bytes)
    return candidate_messages(split_answers(items), read)


def message_of(group: Sequence[ResponseItem], max_inline_media_bytes: int) -> ChatMessage:
    """The chat message for a group of items; its ``raw`` is their JSON, separated by commas."""
    if len(group) == 1 and is_plain_text(group[0].raw):
        return _read(group[0].raw, max_inline_media_bytes)
    chat = chat_from_items(group)
    plain = jsontext.encode(chat)
    message = _read(plain, max_inline_media_bytes)
    chat_json, media_in_text = message.chat_json or plain, False
    if message.chat_json is None and not is_lossless(group, chat):
        chat_json = _with_items(plain, group, max_inline_media_bytes)
        media_in_text = message.answers is not None and _DATA_URL in plain
    raw = b",".join(item.raw for item in group)
    return replace(message, raw=raw, chat_json=chat_json, media_in_text=media_in_text)


def _read(message: bytes, max_inline_media_bytes: int) -> ChatMessage:
    parsed = read_message(message, max_inline_media_bytes)
    assert parsed is not None  # it is an object
    return parsed


def _with_items(chat_json: bytes, group: Sequence[ResponseItem], limit: int) -> bytes:
    """The chat message with its ``sendable_items`` as native form."""
    parts = sent_parts(group, sendable_items(group, limit))
    return with_native(chat_json, API, parts) if parts else chat_json


def _input_items(raw: bytes) -> list[bytes]:
    """The items of an input; a string is a user message.  Raises UNREADABLE."""
    if raw.startswith(b'"'):
        return [b'{"role":"user","content":' + raw + b"}"]
    return jsontext.items(raw)


def state_of(fields: dict[str, bytes], references: tuple[str, ...] = ()) -> State:
    """The state that a request's fields refer to; ``references`` are the ids in its input."""
    previous, conversation = field_of(fields, PREVIOUS), field_of(fields, CONVERSATION)
    has_stored_state = previous is not None or conversation is not None
    return State(
        kept_upstream=has_stored_state,
        extends_instructions=has_stored_state,
        previous=previous if isinstance(previous, str) else None,
        references=references,
        conversation=conversation_id(conversation),
        background=field_of(fields, "background") is True,
        sends_all=TURN_METADATA.decode() in _client_metadata(fields),
        stores=field_of(fields, "store") is not False,
    )


def conversation_id(value: object) -> str | None:
    """The id in a request's ``conversation``: a string, or an object with an ``id``.

    "" for any other value, None without one.
    """
    if value is None or isinstance(value, str):
        return value
    id = value.get("id") if isinstance(value, dict) else None
    return id if isinstance(id, str) else ""


def is_side_request(request: ChatRequest, headers: RawHeaders) -> bool:
    """Whether Codex made this request for itself, for a summary or its own notes for example."""
    fields = dict(headers)
    if SIDE_HEADER in fields:
        return True
    metadata = _client_metadata(request.fields)
    inner = metadata.get(TURN_METADATA.decode())
    turn = inner.encode() if isinstance(inner, str) else fields.get(TURN_METADATA, b"null")
    return _is_side_work(metadata) or _is_side_work(field_of({"": turn}, ""))


def _client_metadata(fields: dict[str, bytes]) -> dict[str, object]:
    metadata = field_of(fields, "client_metadata")
    return metadata if isinstance(metadata, dict) else {}


def _is_side_work(metadata: object) -> bool:
    if not isinstance(metadata, dict):
        return False
    kind = metadata.get("request_kind", TURN)
    return metadata.get("thread_source") in SIDE_SOURCES or kind != TURN
