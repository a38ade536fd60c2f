"""Reads the upstream's answer, from the events of a stream or from a JSON body.

Knows OpenAI's answer format as upstreams really send it.  Invalid data is ignored: it is relayed to
the client anyway, and cannot be recorded.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from proxy.chat import jsontext
from proxy.chat.json_size import MAX_CHOICES
from proxy.chat.large_answers import (
    MAX_VALUES,
    has_few_values,
    max_value_count,
    may_have_many_values,
    read_slim,
)
from proxy.chat.reply.answer import Choice, Reply, make_choice, text_choice
from proxy.chat.reply.deltas import Node, Rope, join_ropes, merge_delta
from proxy.chat.reply.events import DONE, is_error
from proxy.chat.tools.calls import Calls


class Draft:
    """Collects the deltas of one choice."""

    __slots__ = ("_calls", "_extra", "_node", "finish_reason")

    def __init__(self) -> None:
        self._node: Node = {}
        self._extra: Node = {}
        self._calls = Calls()
        self.finish_reason: str | None = None

    def add_text(self, key: str, text: str) -> None:
        rope = self._node.get(key)
        if isinstance(rope, Rope):
            rope.add(text)
        else:
            merge_delta(self._node, {key: text})

    def add_choice(self, choice: dict[str, object]) -> None:
        """Add a choice of a chunk, which may have any shape."""
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(delta, dict):
            self._add_delta(delta)
        if isinstance(message, dict):
            self._add_message(message)
        merge_delta(self._extra, {"logprobs": choice.get("logprobs")})
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = reason if isinstance(reason, str) else "unknown"

    def message(self) -> dict[str, object]:
        calls = [join_ropes(node) for node in self._calls.nodes]
        return {
            **{key: join_ropes(value) for key, value in self._node.items()},
            "tool_calls": calls,
        }

    def drop_oversized_fields(self) -> bool:
        """Drop fields with too many values, except texts; returns whether any was dropped."""
        parts = (self._extra, self._node, self._calls.nodes)
        extra_fits, node_fits, calls_fit = map(has_few_values, parts)
        if not extra_fits:
            self._extra = {}
        if not node_fits:
            self._node = {key: old for key, old in self._node.items() if isinstance(old, Rope)}
        if not calls_fit:
            self._calls = Calls()
        return not (extra_fits and node_fits and calls_fit)

    def logprobs(self) -> object:
        return join_ropes(self._extra.get("logprobs"))

    def _add_delta(self, delta: dict[str, object]) -> None:
        self._calls.add(delta.pop("tool_calls", None))
        merge_delta(self._node, delta)

    def _add_message(self, message: dict[str, object]) -> None:
        """Add a complete message in place of a delta: it replaces what was merged before."""
        calls = message.pop("tool_calls", None)
        if calls:
            self._calls = Calls()
            self._calls.add(calls)
        for key, value in message.items():
            rope = self._node.get(key)
            if isinstance(rope, Rope) and isinstance(value, str):
                rope.add_whole(value)
            elif value:
                self._node.pop(key, None)
                merge_delta(self._node, {key: value})


MAX_REPLY_BYTES = 32 * 1024 * 1024
MAX_REPLY_VALUES = 500_000
"""Limit on the JSON values in all events that have more than text: they may take 50 MB."""

SMALL_DELTA_VALUES = 32
"""Deltas with more values are reduced once ``MAX_REPLY_VALUES`` is reached."""

TEXTS = ("content", "reasoning_content", "reasoning")
"""Fields of a message whose text is streamed in deltas."""


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    """The common delta: only text, other fields null."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    tool_calls: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int = 0
    finish_reason: str | None = None
    logprobs: None = None
    message: None = None
    usage: None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: msgspec.Raw | None = None
    error: None = None


_chunk = msgspec.json.Decoder(_Chunk)


class ReplyBuilder:
    """Builds a reply from the payloads of a stream.  ``build`` may be called at any time.

    Of a reply over ``max_bytes`` the rest is dropped; unfinished choices are incomplete then.  Of a
    reply with too many values the texts are kept, and of the other fields those that are small.
    """

    def __init__(self, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self.error = False
        self.truncated = False
        self._remaining_bytes = max_bytes
        self._remaining_values = MAX_REPLY_VALUES
        self._drafts: dict[int, Draft] = {}
        self._usage: bytes | None = None
        self._model: str | None = None

    def feed(self, payload: bytes) -> None:
        if may_have_many_values(payload):
            return self._feed_any(payload)
        try:
            chunk = _chunk.decode(payload)
        except jsontext.UNREADABLE:  # more than text, or no chunk
            self._feed_any(payload)
            return
        for choice in chunk.choices:
            self._add_text(choice)
        if chunk.usage is not None and chunk.usage.startswith(b"{"):
            self._usage = bytes(chunk.usage)
        self._model = self._model or chunk.model

    def build(self) -> Reply:
        drafts = sorted(self._drafts.items())
        if any([draft.drop_oversized_fields() for _, draft in drafts]):
            self.truncated = True
        return Reply(
            choices=tuple(self._choice(index, draft) for index, draft in drafts),
            usage=self._usage,
            model=self._model,
            error=self.error,
            truncated=self.truncated,
        )

    def _choice(self, index: int, draft: Draft) -> Choice:
        return make_choice(
            index,
            draft.message(),
            finish_reason=draft.finish_reason,
            complete=draft.finish_reason is not None,
            logprobs=draft.logprobs(),
        )

    def _draft_for(self, index: int, size: int) -> Draft | None:
        """The draft of a choice, to which ``size`` bytes are added; None if over the limits."""
        self._remaining_bytes -= size
        self.truncated = self.truncated or self._remaining_bytes < 0
        if self._remaining_bytes < 0 or not 0 <= index < MAX_CHOICES:
            return None
        draft = self._drafts.get(index)
        if draft is None:
            draft = self._drafts[index] = Draft()
        return draft

    def _add_text(self, choice: _Choice) -> None:
        delta = choice.delta
        texts = (delta.content or "", delta.reasoning_content or "", delta.reasoning or "")
        draft = self._draft_for(choice.index, sum(map(len, texts)))
        if draft is None:
            return
        for key, text in zip(TEXTS, texts, strict=True):
            if text:
                draft.add_text(key, text)
        if choice.finish_reason:
            draft.finish_reason = choice.finish_reason

    def _feed_any(self, payload: bytes) -> None:
        if payload.strip() == DONE:
            return
        try:
            event = self._read(payload)
        except jsontext.UNREADABLE:  # relayed already; nothing in it to remember
            return
        if isinstance(event, dict):
            self._add_event(event, len(payload))

    def _read(self, payload: bytes) -> object:
        """The event, reduced if it has too many values.  Raises UNREADABLE."""
        size = max_value_count(payload)
        self._remaining_values -= min(size, MAX_VALUES)
        if self._remaining_values >= 0 and size <= MAX_VALUES:
            return jsontext.read_leniently(jsontext.decode_shallow, payload)
        self.truncated = True
        limit = MAX_VALUES if self._remaining_values >= 0 else SMALL_DELTA_VALUES
        return read_slim(payload, "delta", limit)

    def _add_event(self, event: dict[str, object], size: int) -> None:
        self.error = self.error or is_error(event.get("error"), event.get("object"))
        self._model = self._model or _string(event.get("model"))
        for position, choice in enumerate(jsontext.objects_in(event.get("choices"))):
            draft = self._draft_for(_index(choice, position), size)
            if draft is not None:
                draft.add_choice(choice)
            self._usage = _usage(choice) or self._usage
        self._usage = _usage(event) or self._usage


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    """The common message: only text, other fields null or empty."""

    role: Literal["assistant"]
    content: str
    refusal: None = None
    annotations: Annotated[list[None], msgspec.Meta(max_length=0)] | None = None
    audio: None = None
    function_call: None = None
    tool_calls: None = None
    reasoning_content: None = None
    reasoning: None = None


class _TextChoice(msgspec.Struct):
    message: _Text
    index: int = 0
    finish_reason: str | None = None
    logprobs: None = None


class _TextAnswer(msgspec.Struct):
    """The common answer: one text."""

    choices: Annotated[list[_TextChoice], msgspec.Meta(min_length=1, max_length=1)]
    model: str | None = None
    usage: msgspec.Raw = jsontext.NULL
    error: None = None
    object: str | None = None


_text_answer = msgspec.json.Decoder(_TextAnswer)


def _read_text(body: bytes) -> Reply | None:
    """``read_reply`` for the common answer, at half the cost; None for any other."""
    if body.count(b"[") + body.count(b"{") > jsontext.MAX_LEVELS or not jsontext.is_utf8(body):
        return None
    try:
        answer = _text_answer.decode(body)
        usage = _usage({"usage": jsontext.decode(answer.usage)})
    except jsontext.UNREADABLE:
        return None
    choice = answer.choices[0]
    return Reply(
        choices=(text_choice(choice.index, choice.message.content, choice.finish_reason),),
        usage=usage,
        model=answer.model or None,
        error=is_error(None, answer.object),
    )


def read_reply(body: bytes) -> Reply | None:
    """Read a JSON answer; None if it is not an object with choices or an error."""
    is_oversized = may_have_many_values(body)
    if not is_oversized and (text := _read_text(body)) is not None:
        return text
    try:
        if is_oversized:
            answer: object = read_slim(body, "message")
        else:
            answer = jsontext.read_leniently(jsontext.decode_shallow, body)
    except jsontext.UNREADABLE:  # relayed as it is; nothing in it to remember
        return None
    if answer is None and is_oversized:
        return Reply(truncated=True)
    if not isinstance(answer, dict):
        return None
    error = is_error(answer.get("error"), answer.get("object"))
    if not isinstance(answer.get("choices"), list) and not error:
        return None
    choices = [
        _json_choice(choice, _index(choice, position))
        for position, choice in enumerate(jsontext.objects_in(answer.get("choices")))
    ]
    return Reply(
        choices=tuple(sorted(choices, key=lambda choice: choice.index)),
        usage=_usage(answer),
        model=_string(answer.get("model")),
        error=error,
        truncated=is_oversized,
    )


def _json_choice(choice: dict[str, object], index: int) -> Choice:
    message = choice.get("message")
    return make_choice(
        index,
        message if isinstance(message, dict) else {},
        finish_reason=choice.get("finish_reason"),
        complete=True,
        logprobs=choice.get("logprobs"),
    )


def _index(choice: dict[str, object], position: int) -> int:
    """The index of a choice; its position if it has none."""
    index = choice.get("index")
    return index if isinstance(index, int) else position


def _usage(holder: dict[str, object]) -> bytes | None:
    usage = holder.get("usage")
    return jsontext.encode(usage) if isinstance(usage, dict) else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
