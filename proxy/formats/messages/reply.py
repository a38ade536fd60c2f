"""Reads an answer of the Messages API, from the events of a stream or from a JSON body.

Unreadable events are skipped: they are relayed all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import NULL
from proxy.chat.large_answers import (
    MAX_VALUES,
    has_few_values,
    max_value_count,
    may_have_many_values,
)
from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.chat.reply.answer import Choice, Reply, make_choice
from proxy.chat.reply.deltas import Node, Rope, join_ropes, merge_delta
from proxy.chat.reply.reply import MAX_REPLY_BYTES, MAX_REPLY_VALUES
from proxy.formats.messages.blocks import THINKING, Json, is_blank
from proxy.formats.messages.chat import chat_from_blocks, parse_input, with_native_blocks
from proxy.formats.messages.events import end_signal, may_end


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text_delta", "thinking_delta", "input_json_delta"]
    text: str = ""
    thinking: str = ""
    partial_json: str = ""


class _TextEvent(msgspec.Struct):
    """The common event: a delta of text, thinking or a call's input."""

    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta


class _AnswerHead(msgspec.Struct):
    model: str | None = None
    usage: msgspec.Raw = NULL
    stop_reason: str | None = None


class _AnyEvent(msgspec.Struct):
    """Any event; fields that may be large are decoded only if they are needed."""

    type: str = ""
    index: int = 0
    message: _AnswerHead | None = None
    content_block: msgspec.Raw = NULL
    delta: msgspec.Raw = NULL
    usage: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


_common = msgspec.json.Decoder(_TextEvent)
_any = msgspec.json.Decoder(_AnyEvent)
_message = msgspec.json.Decoder(_AnswerHead)

_PARTIAL = "partial_json"
_RAW = ("content_block", "delta", "usage", "error")
_NAMES = ("type", "id", "name", "signature")

_KINDS = {
    "text": "text",
    "citations": "text",
    "thinking": "thinking",
    "signature": "thinking",
    _PARTIAL: "tool_use",
}
"""The kind of block that a field of a delta belongs to; other fields belong to other kinds."""

_OTHER = ""


class EventReader:
    """See StreamReader.  An answer over ``max_bytes`` is cut off there, and incomplete."""

    may_end, end_signal = staticmethod(may_end), staticmethod(end_signal)

    def __init__(self, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self._remaining_bytes, self._remaining_values = max_bytes, MAX_REPLY_VALUES
        self._blocks: list[Node] = []
        self._open_blocks: dict[int, dict[str, Node]] = {}
        """The open blocks at each index, by kind."""
        self._usage: Json = {}
        self._model: str | None = None
        self._stop_reason: str | None = None
        self._started = self._error = self._truncated = False

    def feed(self, payload: bytes) -> None:
        try:
            event = _common.decode(payload)
        except jsontext.UNREADABLE:  # another event, or none
            return self._feed_any(payload)
        delta = event.delta
        self._append_to_block(event.index, "text", delta.text, len(delta.text))
        self._append_to_block(event.index, "thinking", delta.thinking, len(delta.thinking))
        self._append_to_block(event.index, _PARTIAL, delta.partial_json, len(delta.partial_json))

    def build(self) -> Reply:
        nodes = self._blocks
        # Checked before joining the pieces, and after, since joined text is parsed as JSON.
        blocks = [_finished_block(node) for node in nodes] if has_few_values(nodes) else None
        if blocks is None or not has_few_values(blocks):
            self._truncated = True
            blocks = [_finished_block(node) for node in nodes if node.get("type") == "text"]
        complete = self._stop_reason is not None and not self._truncated
        choices: tuple[Choice, ...] = ()
        if self._started or blocks:
            choices = (choice_from_blocks(blocks, self._stop_reason, complete=complete),)
        return Reply(
            choices=choices,
            usage=jsontext.encode(self._usage) if self._usage else None,
            model=self._model or None,
            error=self._error,
            truncated=self._truncated,
        )

    def _feed_any(self, payload: bytes) -> None:
        with suppress(*jsontext.UNREADABLE):  # relayed already; nothing to record
            jsontext.read_leniently(self._feed_event, payload)

    def _feed_event(self, payload: bytes) -> None:
        """Raises UNREADABLE."""
        event = _read_event(payload)
        if event.type == "error" or (_is_present(event.error) and not event.type):
            self._error = True
        elif event.type == "message_start" and event.message is not None:
            self._started, self._model = True, event.message.model
            self._update_usage(event.message.usage)
        elif event.type == "content_block_start":
            self._open_block(event.index, self._read(event.content_block), len(payload))
        elif event.type == "content_block_delta":
            self._apply_delta(event.index, self._read(event.delta), len(payload))
        elif event.type == "message_delta":
            self._finish(event)

    def _finish(self, event: _AnyEvent) -> None:
        ending = _message.decode(event.delta) if _is_present(event.delta) else _AnswerHead()
        self._stop_reason = ending.stop_reason or self._stop_reason
        self._update_usage(event.usage)

    def _update_usage(self, usage: msgspec.Raw) -> None:
        """Update the usage; counts are of the whole answer so far, so later ones replace."""
        counts = self._read(usage)
        self._usage |= {key: value for key, value in counts.items() if value is not None}

    def _read(self, raw: msgspec.Raw) -> Json:
        """Decode an object; {} for anything else, or over the limits.  Raises UNREADABLE."""
        size = max_value_count(bytes(raw))
        self._remaining_values -= min(size, MAX_VALUES)
        if self._remaining_values < 0 or size > MAX_VALUES:
            self._truncated = True
            return {}
        value = jsontext.decode_shallow(bytes(raw))
        return value if isinstance(value, dict) else {}

    def _open_block(self, index: int, block: Json, size: int) -> None:
        """Begin a block, which replaces the open ones at its index."""
        if block and not self._is_open_already(index, block) and self._has_room(size):
            self._open_blocks[index] = {}
            self._append_block(index, block)

    def _is_open_already(self, index: int, block: Json) -> bool:
        """Whether this call is open there already; the API refuses duplicate ids."""
        open_block = self._open_blocks.get(index, {}).get(_kind(block), {})
        return block.get("id") is not None and open_block.get("id") == block["id"]

    def _append_block(self, index: int, block: Json) -> Node:
        node = {key: _as_rope(key, value) for key, value in block.items()}
        self._blocks.append(node)
        self._open_blocks.setdefault(index, {})[_kind(block)] = node
        return node

    def _apply_delta(self, index: int, delta: Json, size: int) -> None:
        """Append a delta to a block of any kind; a citation is appended to the list of them."""
        fields = {key: value for key, value in delta.items() if key != "type"}
        citation = fields.pop("citation", None)
        if citation is not None:
            fields["citations"] = [citation]
        for field, value in fields.items():
            self._append_to_block(index, field, value, size)

    def _append_to_block(self, index: int, field: str, value: object, size: int) -> None:
        """Append a field's value to the open block of a matching kind.

        Some servers send a text delta at a call's index: a text or thinking without a matching
        block begins a new one.  Any other field is appended to a block of unknown kind, if one is
        open: a compaction, for example, has a signature.
        """
        if not size:
            return
        kind = _KINDS.get(field, _OTHER)
        nodes = self._open_blocks.get(index, {})
        node = nodes.get(kind) if field == kind else nodes.get(kind, nodes.get(_OTHER))
        starts_block = field == kind and isinstance(value, str)
        if (node is None and not starts_block) or not self._has_room(size):
            return
        if node is None:
            node = self._append_block(index, {"type": kind})
        merge_delta(node, {field: value})

    def _has_room(self, size: int) -> bool:
        self._remaining_bytes -= size
        self._truncated = self._truncated or self._remaining_bytes < 0
        return self._remaining_bytes >= 0


def _read_event(payload: bytes) -> _AnyEvent:
    """Raises UNREADABLE."""
    try:
        return _any.decode(payload)
    except msgspec.DecodeError:  # a cut-off character, which only ``fields`` accepts
        fields = jsontext.fields(payload)
        kind, index = (jsontext.decode(fields.get(name, b"0")) for name in ("type", "index"))
        if not isinstance(kind, str) or not isinstance(index, int):
            raise ValueError("no event") from None
        block, delta, usage, error = (msgspec.Raw(fields.get(name, b"null")) for name in _RAW)
        return _AnyEvent(
            type=kind, index=index, content_block=block, delta=delta, usage=usage, error=error
        )


def _is_present(raw: msgspec.Raw) -> bool:
    return raw != NULL


def _kind(block: Json) -> str:
    type = block.get("type")
    kind = "tool_use" if isinstance(type, str) and type.endswith("tool_use") else type
    return kind if isinstance(kind, str) and kind in _KINDS.values() else _OTHER


def _as_rope(key: str, value: object) -> object:
    """A field's value; a text that deltas may extend becomes a Rope."""
    return Rope(value) if isinstance(value, str) and key not in _NAMES else value


def _finished_block(node: Node) -> Json:
    """The block with its Ropes joined and its input parsed."""
    block = {key: join_ropes(value) for key, value in node.items()}
    input_json = block.pop(_PARTIAL, None)
    return {**block, "input": parse_input(input_json)} if isinstance(input_json, str) else block


class _TextBlock(msgspec.Struct):
    type: str = ""
    text: str = ""


class _PlainAnswer(_AnswerHead):
    """A JSON answer; large fields are decoded only if needed."""

    type: str = ""
    content: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


_answer = msgspec.json.Decoder(_PlainAnswer)
_texts = msgspec.json.Decoder(list[_TextBlock])


def read_answer(body: bytes) -> Reply | None:
    is_oversized = may_have_many_values(body)
    try:
        if is_oversized:
            return _answer_in(body, is_oversized=True)
        return jsontext.read_leniently(partial(_answer_in, is_oversized=False), body)
    except jsontext.UNREADABLE:  # relayed as it is; nothing to record
        return Reply(truncated=True) if is_oversized else None


def _answer_in(body: bytes, *, is_oversized: bool) -> Reply | None:
    """Raises UNREADABLE."""
    answer = _read_plain(body)
    if not _is_present(answer.content):
        failed = answer.type == "error" or _is_present(answer.error)
        return Reply(error=True) if failed else None
    blocks = (
        _texts_only(answer.content)
        if is_oversized
        else jsontext.decode_shallow(bytes(answer.content))
    )
    usage = jsontext.decode_shallow(bytes(answer.usage))
    if not isinstance(blocks, list):
        return None
    objects = [block for block in blocks if isinstance(block, dict)]
    return Reply(
        choices=(choice_from_blocks(objects, answer.stop_reason, complete=not is_oversized),),
        usage=jsontext.encode(usage) if isinstance(usage, dict) else None,
        model=answer.model or None,
        truncated=is_oversized,
    )


def _read_plain(body: bytes) -> _PlainAnswer:
    """Raises UNREADABLE."""
    try:
        return _answer.decode(body)
    except msgspec.DecodeError:  # see _read_event
        fields = jsontext.fields(body)
        content = msgspec.Raw(fields.pop("content", b"null"))
        head = _message.decode(jsontext.join_fields(fields))
        return _PlainAnswer(
            content=content, model=head.model, usage=head.usage, stop_reason=head.stop_reason
        )


def _texts_only(content: msgspec.Raw) -> list[Json]:
    """The text blocks of a content with too many values."""
    texts = (block for block in _texts.decode(content) if block.type == "text")
    return [{"type": "text", "text": block.text} for block in texts]


def choice_from_blocks(
    blocks: Sequence[Json], stop_reason: str | None, *, complete: bool
) -> Choice:
    """The choice for an answer's blocks.  Of an incomplete one only the texts are sent back."""
    sendable = [block for block in blocks if not is_blank(block) and not _is_unsigned(block)]
    thinking = [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
    reasoning = "\n".join(text for text in thinking if isinstance(text, str) and text)
    make = partial(_choice, reasoning=reasoning, stop_reason=stop_reason, complete=complete)
    choice = make(sendable)
    if choice.complete and not choice.blank:
        body = with_native_blocks(choice.body, sendable, MAX_INLINE_MEDIA_BYTES)
        return msgspec.structs.replace(choice, body=body)
    texts = [block for block in sendable if block.get("type") == "text"]
    if choice.complete or len(texts) == len(sendable):
        return choice
    return msgspec.structs.replace(make(texts), wire=choice.wire or choice.body)


def _choice(
    blocks: Sequence[Json], *, reasoning: str, stop_reason: str | None, complete: bool
) -> Choice:
    return make_choice(
        0,
        {**chat_from_blocks("assistant", blocks), "reasoning_content": reasoning},
        finish_reason=stop_reason,
        complete=complete,
    )


def _is_unsigned(block: Json) -> bool:
    """Whether it is thinking without a signature (it was cut off), which the API refuses."""
    if block.get("type") not in THINKING:
        return False
    return not (block.get("signature") or block.get("data"))
