"""An answer of the Messages API, from a stream as it comes or from a plain body.

Garbage is passed over: the client has its bytes already, and what cannot be read cannot be
remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.jsontext import NULL
from proxy.chat.message import MAX_INLINE_MEDIA_BYTES
from proxy.chat.reply.answer import Choice, Reply, make_choice
from proxy.chat.reply.deltas import Node, Rope, grow, whole
from proxy.chat.reply.reply import MAX_REPLY_BYTES, MAX_REPLY_VALUES
from proxy.chat.slim import MAX_VALUES, is_heavy, is_light, values
from proxy.formats.messages.blocks import THINKING, Json, is_blank
from proxy.formats.messages.chat import chat_of, input_of, stored
from proxy.formats.messages.events import mark, suspect


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text_delta", "thinking_delta", "input_json_delta"]
    text: str = ""
    thinking: str = ""
    partial_json: str = ""


class _TextEvent(msgspec.Struct):
    """The common event: more of a text."""

    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta


class _AnswerHead(msgspec.Struct):
    model: str | None = None
    usage: msgspec.Raw = NULL
    stop_reason: str | None = None


class _AnyEvent(msgspec.Struct):
    """Any event; what may be large is read when it is known to be wanted."""

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
    """See StreamReader.  Of an answer over ``max_bytes`` the rest is not kept: it is incomplete."""

    suspect, mark = staticmethod(suspect), staticmethod(mark)

    def __init__(self, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self._room, self._values = max_bytes, MAX_REPLY_VALUES
        self._blocks: list[Node] = []
        self._at: dict[int, dict[str, Node]] = {}
        """What an index means now, by kind."""
        self._usage: Json = {}
        self._model: str | None = None
        self._stop_reason: str | None = None
        self._begun = self._error = self._truncated = False

    def feed(self, payload: bytes) -> None:
        try:
            said = _common.decode(payload)
        except jsontext.UNREADABLE:  # another event, or none
            return self._feed_any(payload)
        piece = said.delta
        self._grow(said.index, "text", piece.text, len(piece.text))
        self._grow(said.index, "thinking", piece.thinking, len(piece.thinking))
        self._grow(said.index, _PARTIAL, piece.partial_json, len(piece.partial_json))

    def build(self) -> Reply:
        nodes = self._blocks
        # What is too much is known before it is put together, and what a text of JSON is, after.
        blocks = [_whole(node) for node in nodes] if is_light(nodes) else None
        if blocks is None or not is_light(blocks):
            self._truncated = True
            blocks = [_whole(node) for node in nodes if node.get("type") == "text"]
        complete = self._stop_reason is not None and not self._truncated
        begun = self._begun or bool(blocks)
        return Reply(
            choices=(choice_of(blocks, self._stop_reason, complete=complete),) if begun else (),
            usage=jsontext.encode(self._usage) if self._usage else None,
            model=self._model or None,
            error=self._error,
            truncated=self._truncated,
        )

    def _feed_any(self, payload: bytes) -> None:
        with suppress(*jsontext.UNREADABLE):  # relayed already; nothing in it to remember
            jsontext.forgiving(self._take, payload)

    def _take(self, payload: bytes) -> None:
        """Raises UNREADABLE."""
        event = _read_event(payload)
        if event.type == "error" or (_is_there(event.error) and not event.type):
            self._error = True
        elif event.type == "message_start" and event.message is not None:
            self._begun, self._model = True, event.message.model
            self._count(event.message.usage)
        elif event.type == "content_block_start":
            self._open(event.index, self._read(event.content_block), len(payload))
        elif event.type == "content_block_delta":
            self._extend(event.index, self._read(event.delta), len(payload))
        elif event.type == "message_delta":
            self._end(event)

    def _end(self, event: _AnyEvent) -> None:
        ending = _message.decode(event.delta) if _is_there(event.delta) else _AnswerHead()
        self._stop_reason = ending.stop_reason or self._stop_reason
        self._count(event.usage)

    def _count(self, usage: msgspec.Raw) -> None:
        """Later figures are of the whole answer, as the earlier ones are."""
        said = self._read(usage)
        self._usage |= {key: value for key, value in said.items() if value is not None}

    def _read(self, raw: msgspec.Raw) -> Json:
        """An object, empty where there is none or no room for it.  Raises UNREADABLE."""
        size = values(bytes(raw))
        self._values -= min(size, MAX_VALUES)
        if self._values < 0 or size > MAX_VALUES:
            self._truncated = True
            return {}
        value = jsontext.shallow(bytes(raw))
        return value if isinstance(value, dict) else {}

    def _open(self, index: int, block: Json, size: int) -> None:
        """A block that begins: it is what the index means from now on."""
        if block and not self._is_again(index, block) and self._has_room(size):
            self._at[index] = {}
            self._begin(index, block)

    def _is_again(self, index: int, block: Json) -> bool:
        """Has this call begun there already?  The API refuses an id that comes twice."""
        begun = self._at.get(index, {}).get(_kind(block), {})
        return block.get("id") is not None and begun.get("id") == block["id"]

    def _begin(self, index: int, block: Json) -> Node:
        node = {key: _growing(key, value) for key, value in block.items()}
        self._blocks.append(node)
        self._at.setdefault(index, {})[_kind(block)] = node
        return node

    def _extend(self, index: int, delta: Json, size: int) -> None:
        """More of a block, of whatever kind: fields are added to, a citation to the others."""
        more = {key: value for key, value in delta.items() if key != "type"}
        citation = more.pop("citation", None)
        if citation is not None:
            more["citations"] = [citation]
        for field, value in more.items():
            self._grow(index, field, value, size)

    def _grow(self, index: int, field: str, value: object, size: int) -> None:
        """More of the block there that it fits: some servers add a text to a call.  A text or a
        thought that fits none begins one; what else fits none may be of a kind that is not known,
        as a compaction has a signature."""
        if not size:
            return
        kind = _KINDS.get(field, _OTHER)
        nodes = self._at.get(index, {})
        node = nodes.get(kind) if field == kind else nodes.get(kind, nodes.get(_OTHER))
        begins = node is None and field == kind and isinstance(value, str)
        if (begins or node is not None) and self._has_room(size):
            grow(self._begin(index, {"type": kind}) if node is None else node, {field: value})

    def _has_room(self, size: int) -> bool:
        self._room -= size
        self._truncated = self._truncated or self._room < 0
        return self._room >= 0


def _read_event(payload: bytes) -> _AnyEvent:
    """Raises UNREADABLE."""
    try:
        return _any.decode(payload)
    except msgspec.DecodeError:  # half a character, which only the slow way reads
        fields = jsontext.fields(payload)
        kind, index = (jsontext.decode(fields.get(name, b"0")) for name in ("type", "index"))
        if not isinstance(kind, str) or not isinstance(index, int):
            raise ValueError("no event") from None
        block, delta, usage, error = (msgspec.Raw(fields.get(name, b"null")) for name in _RAW)
        return _AnyEvent(
            type=kind, index=index, content_block=block, delta=delta, usage=usage, error=error
        )


def _is_there(raw: msgspec.Raw) -> bool:
    return raw != NULL


def _kind(block: Json) -> str:
    said = block.get("type")
    kind = "tool_use" if isinstance(said, str) and said.endswith("tool_use") else said
    return kind if isinstance(kind, str) and kind in _KINDS.values() else _OTHER


def _growing(key: str, value: object) -> object:
    """A field of a block: what may be added to is a rope."""
    return Rope(value) if isinstance(value, str) and key not in _NAMES else value


def _whole(node: Node) -> Json:
    """A block whose pieces are put together."""
    block = {key: whole(value) for key, value in node.items()}
    given = block.pop(_PARTIAL, None)
    return {**block, "input": input_of(given)} if isinstance(given, str) else block


class _TextBlock(msgspec.Struct):
    type: str = ""
    text: str = ""


class _PlainAnswer(_AnswerHead):
    """A plain answer; of a heavy one what is light."""

    type: str = ""
    content: msgspec.Raw = NULL
    error: msgspec.Raw = NULL


_answer = msgspec.json.Decoder(_PlainAnswer)
_texts = msgspec.json.Decoder(list[_TextBlock])


def read_answer(body: bytes) -> Reply | None:
    """The reply that a plain answer is; None if it is none."""
    heavy = is_heavy(body)
    try:
        if heavy:
            return _answer_in(body, heavy=True)
        return jsontext.forgiving(partial(_answer_in, heavy=False), body)
    except jsontext.UNREADABLE:  # relayed as it is; nothing in it to remember
        return Reply(truncated=True) if heavy else None


def _answer_in(body: bytes, *, heavy: bool) -> Reply | None:
    """Raises UNREADABLE."""
    answer = _read_plain(body)
    if not _is_there(answer.content):
        failed = answer.type == "error" or _is_there(answer.error)
        return Reply(error=True) if failed else None
    blocks = _light(answer.content) if heavy else jsontext.shallow(bytes(answer.content))
    usage = jsontext.shallow(bytes(answer.usage))
    if not isinstance(blocks, list):
        return None
    said = [block for block in blocks if isinstance(block, dict)]
    return Reply(
        choices=(choice_of(said, answer.stop_reason, complete=not heavy),),
        usage=jsontext.encode(usage) if isinstance(usage, dict) else None,
        model=answer.model or None,
        truncated=heavy,
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


def _light(content: msgspec.Raw) -> list[Json]:
    """The texts of an answer that holds too much else."""
    texts = (block for block in _texts.decode(content) if block.type == "text")
    return [{"type": "text", "text": block.text} for block in texts]


def choice_of(blocks: Sequence[Json], stop_reason: str | None, *, complete: bool) -> Choice:
    """The answer that blocks are.  One that is not complete carries back its texts alone."""
    kept = [block for block in blocks if not is_blank(block) and not _is_unsigned(block)]
    thoughts = [block.get("thinking") for block in blocks if block.get("type") == "thinking"]
    thought = "\n".join(text for text in thoughts if isinstance(text, str) and text)
    made = partial(_choice, thought=thought, stop_reason=stop_reason, complete=complete)
    choice = made(kept)
    if choice.complete and not choice.blank:
        body = stored(choice.body, kept, MAX_INLINE_MEDIA_BYTES)
        return msgspec.structs.replace(choice, body=body)
    texts = [block for block in kept if block.get("type") == "text"]
    if choice.complete or len(texts) == len(kept):
        return choice
    return msgspec.structs.replace(made(texts), wire=choice.wire or choice.body)


def _choice(
    blocks: Sequence[Json], *, thought: str, stop_reason: str | None, complete: bool
) -> Choice:
    return make_choice(
        0,
        {**chat_of("assistant", blocks), "reasoning_content": thought},
        finish_reason=stop_reason,
        complete=complete,
    )


def _is_unsigned(block: Json) -> bool:
    """Thinking that was cut off: without its signature it is taken by nobody."""
    if block.get("type") not in THINKING:
        return False
    return not (block.get("signature") or block.get("data"))
