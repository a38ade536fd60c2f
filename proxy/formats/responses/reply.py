"""Reads a response object into a ``Reply``: all of its output is one choice.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from proxy.chat import jsontext
from proxy.chat.json_size import has_more_values
from proxy.chat.jsontext import NULL
from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.chat.reply.answer import Choice, Reply, make_choice
from proxy.chat.reply.reply import MAX_REPLY_VALUES
from proxy.formats.native import OMITTED, AnswerId, with_native
from proxy.formats.responses.chat import (
    actions_in,
    chat_from_items,
    sendable_items,
    sent_parts,
    value_of,
    without_id,
)
from proxy.formats.responses.items import (
    API,
    CHAT_CALLS,
    IMAGE_CALL,
    MESSAGE,
    ResponseItem,
    read_item,
)
from proxy.formats.responses.names import parse_response_id
from proxy.formats.responses.stored_objects import frame_of_response

_PENDING = ("queued", "in_progress")
"""The statuses of a background response that is not finished."""

MAX_NAME = 256
"""Characters of a background response's id."""

_FINISH_REASONS = {"max_output_tokens": "length"}
"""Finish reasons of chat completions, by the reason why a response is incomplete."""


class Response(msgspec.Struct):
    """The fields of a response that memory needs; each may have any type."""

    id: Any = None
    object: Any = None
    status: Any = None
    model: Any = None
    store: Any = None
    output: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL
    error: Any = None
    incomplete_details: Any = None
    background: Any = None

    @property
    def pending_id(self) -> str | None:
        """The id by which a background response will be fetched; None if it is no pending one."""
        is_finished = self.background is not True or self.status not in _PENDING
        return None if is_finished or not isinstance(self.id, str) else self.id[:MAX_NAME]

    @property
    def items(self) -> list[ResponseItem]:
        """Its output; unreadable items are left out."""
        try:
            parsed = map(read_item, jsontext.items(bytes(self.output)))
        except jsontext.UNREADABLE:
            return []
        return [item for item in parsed if item is not None]

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "cancelled") or self.error is not None

    @property
    def is_emulated(self) -> bool:
        """Whether the proxy stores it, and not the upstream: its id is the proxy's."""
        return parse_response_id(self.id) is not None

    @property
    def answer_id(self) -> AnswerId | None:
        return AnswerId(self.id, self.store is not False) if isinstance(self.id, str) else None

    @property
    def is_stored_upstream(self) -> bool:
        """Whether the upstream stores it."""
        return (not isinstance(self.id, str) or self.store is not False) and not self.is_emulated

    def finish_reason(self, *, calls: bool) -> str | None:
        """The finish reason in chat completions; None if it has not finished."""
        if self.status == "completed":
            return "tool_calls" if calls else "stop"
        details = self.incomplete_details if self.status == "incomplete" else None
        reason = details.get("reason") if isinstance(details, dict) else None
        return _FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else None


_response = jsontext.struct_reader(Response)


def read_response(raw: bytes) -> Response | None:
    """Parse a response; None if it is not one, or has too many values."""
    if has_more_values(MAX_REPLY_VALUES, raw):
        return None
    try:
        return jsontext.read_leniently(_response, raw)
    except jsontext.UNREADABLE:
        return None


def read_reply(body: bytes) -> Reply | None:
    response = read_response(body)
    if response is None:
        return Reply(truncated=True) if has_more_values(MAX_REPLY_VALUES, body) else None
    if response.object != "response" and response.output == NULL and response.error is None:
        return None
    return reply_of(response, response.items, raw=body)


def reply_of(
    response: Response,
    items: Sequence[ResponseItem],
    *,
    raw: bytes,
    truncated: bool = False,
    unfinished: Mapping[str, bytes] | None = None,
) -> Reply:
    """The reply with these items as its output; ``raw`` is the response's JSON.

    ``truncated``: the output had more items.  ``unfinished``: substitutes (JSON by id) for items
    that were begun and not finished.
    """
    if response.pending_id is not None:
        return Reply(model=_text(response.model), pending_id=response.pending_id)
    usage = bytes(response.usage)
    frame = frame_of_response(raw) if response.is_emulated else b""
    choices: tuple[Choice, ...] = ()
    if items or unfinished:
        choices = (_choice(response, items, frame, unfinished or {}, truncated=truncated),)
    return Reply(
        choices=choices,
        usage=usage if usage.startswith(b"{") else None,
        model=_text(response.model),
        error=response.failed,
        truncated=truncated,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _choice(
    response: Response,
    items: Sequence[ResponseItem],
    frame: bytes,
    unfinished: Mapping[str, bytes],
    *,
    truncated: bool,
) -> Choice:
    """The choice for an answer's items.

    Of an answer that ended, even at a limit, later requests send back the finished items; of one
    that was cut off, only the text.
    """
    received, answer = _chat_choice(response, items, truncated=truncated), response.answer_id
    kept = [item.raw for item in sendable_items(items, MAX_INLINE_MEDIA_BYTES)]
    wire = partial(with_native, received.wire or received.body, API, kept, answer, frame)
    if not received.complete:
        # No items are sent back, but clients may still refer to them.
        substitutes = {**unfinished, **_cut_off_items(items)}
        body = received.body
        if substitutes:
            body = with_native(body, API, (), substitutes=substitutes)
        return replace(received, body=body, wire=wire())
    finished = items if response.status == "completed" else _finished_items(items)
    all_finished = len(finished) == len(items)
    choice = received if all_finished else _chat_choice(response, finished, truncated=truncated)
    stored = response.is_stored_upstream
    parts, substitutes = _parts_to_resend(items, finished, choice.text, stored=stored)
    body = with_native(choice.body, API, parts, answer, frame, substitutes)
    equal = all_finished and received.wire is None and kept == parts
    return replace(choice, body=body, wire=None if equal else wire())


def _parts_to_resend(
    items: Sequence[ResponseItem], finished: Sequence[ResponseItem], text: str, *, stored: bool
) -> tuple[list[bytes], dict[str, bytes]]:
    """The items (JSON) that later requests send back, and the substitutes for the others."""
    sent = sendable_items(finished, MAX_INLINE_MEDIA_BYTES, stored=stored)
    if stored:
        parts = sent_parts(items, sent)
        substitutes = _items_sent_without_id(sent, parts)
    else:
        parts = [item.raw for item in sent]
        substitutes = _omitted_items(items, sent)
    if not parts:
        substitutes |= _answer_substitutes(items, text, stored=stored)
    return parts, substitutes


def _chat_choice(response: Response, items: Sequence[ResponseItem], *, truncated: bool) -> Choice:
    by_model = bool(items) and items[0].answers is None
    chat = chat_from_items(items if by_model else [_ANSWER_START, *items])
    finish_reason = response.finish_reason(calls=bool(chat.get("tool_calls")))
    return make_choice(
        0, chat, finish_reason=finish_reason, complete=finish_reason is not None and not truncated
    )


def _omitted_items(items: Sequence[ResponseItem], sent: Sequence[ResponseItem]) -> dict[str, bytes]:
    """Null, by id, for each item that is not sent back: no upstream has it either."""
    sent_ids = {item.id for item in sent}
    return {item.id: OMITTED for item in items if item.id and item.id not in sent_ids}


def _answer_substitutes(
    items: Sequence[ResponseItem], text: str, *, stored: bool
) -> dict[str, bytes]:
    """Substitutes, by id, for the items of an answer of which none is sent back, so that a request
    that refers to one still gets the answer.

    An image that the upstream has ``stored`` can be referred to by its id.
    https://platform.openai.com/docs/guides/image-generation#multi-turn-image-generation
    """
    actions = [item for item in actions_in(items) if item.id]
    if stored:
        images = [item for item in actions if item.kind == IMAGE_CALL]
        return {item.id: jsontext.encode({"type": IMAGE_CALL, "id": item.id}) for item in images}
    message = jsontext.encode({"role": "assistant", "content": text})
    return {item.id: message for item in actions[:1]}


def _items_sent_without_id(
    sent: Sequence[ResponseItem], parts: Sequence[bytes]
) -> dict[str, bytes]:
    """The original JSON, by id, of items that are sent back without their id: a request that refers
    to one also means the reasoning before it, which the upstream has."""
    pairs = zip(sent, parts, strict=True)
    return {item.id: item.raw for item, part in pairs if item.id and part is not item.raw}


def _cut_off_items(items: Sequence[ResponseItem]) -> dict[str, bytes]:
    """Substitutes, by id, for the items of a cut-off answer: its messages and calls without
    reasoning, and null for the rest."""
    return {
        item.id: without_id(item) if item.kind == MESSAGE or item.call is not None else OMITTED
        for item in items
        if item.id
    }


def _finished_items(items: Sequence[ResponseItem]) -> Sequence[ResponseItem]:
    """The items of an answer that ended at a limit, without unfinished ones.

    An unfinished call stays if there is no finished one, since clients resend and may answer it.
    """
    finished = [item for item in items if not _is_unfinished(item)]
    if any(item.call is not None for item in finished):
        return finished
    return [item for item in items if item.call is not None or not _is_unfinished(item)]


def _is_unfinished(item: ResponseItem) -> bool:
    """Whether an item is unfinished.  A message counts as finished; a call must say that it is."""
    status = value_of(item).get("status")
    if item.kind == MESSAGE or status == "completed":
        return False
    return status is not None or item.kind in CHAT_CALLS


_ANSWER_START = ResponseItem(b"{}", "reasoning")
"""A placeholder before an output that begins with a result of the upstream's own tool, so that
the output is read as the model's message."""
