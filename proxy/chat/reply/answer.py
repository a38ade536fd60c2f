"""A finished answer: the message that later requests send back, and everything that was received.

Both have a canonical form, so that an answer has the same bytes whether it was streamed or not.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from proxy.chat import jsontext
from proxy.chat.media.parts import with_small_media
from proxy.chat.message import MAX_INLINE_MEDIA_BYTES, read_stored
from proxy.chat.native import REASONING, transcript_of, with_transcript
from proxy.chat.usage import TokenUsage, read_usage

_ORDER = ("role", "content", "refusal", "audio", "function_call", "tool_calls", "name")
"""The fields that a request may send back, in canonical order."""

CUT_OFF = ("length", "content_filter")
"""Finish reasons of answers that may be incomplete, their calls too."""


class Choice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One choice of a reply.

    ``body`` is the JSON that later requests send back, ``wire`` the JSON of everything that was
    received (reasoning, annotations, log probabilities, partial calls), None if that is the same.
    ``complete``: its finish was seen.  ``unanswered_form`` is the message (JSON) that later
    requests send if its calls stay unanswered, None if that is its ``text``.  The other fields are
    those of ChatMessage.
    """

    index: int
    body: bytes
    wire: bytes | None
    calls: tuple[str, ...]
    digest: str
    blank: bool
    complete: bool
    text: str = ""
    finish_reason: str | None = None
    shape: str = ""
    unanswered_form: bytes | None = msgspec.field(name="told", default=None)


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream's answer: choices by index, the usage object as JSON, the model.

    ``error``: it is, or ended with, an error object.  ``truncated``: it was larger than what is
    kept.  ``pending_id``: the id by which an unfinished background response will be fetched.
    """

    choices: tuple[Choice, ...] = ()
    usage: bytes | None = None
    model: str | None = None
    error: bool = False
    truncated: bool = False
    pending_id: str | None = None

    @property
    def token_usage(self) -> TokenUsage:
        """The tokens that the upstream has counted."""
        return read_usage(self.usage)


def make_choice(
    index: int,
    message: Mapping[str, object],
    *,
    finish_reason: object,
    complete: bool,
    logprobs: object = None,
) -> Choice:
    """A choice from its message, merged or plain."""
    received = _canonical_fields(message, logprobs)
    sendable = _sendable_message(received, complete=complete)
    wire = (
        None
        if received == sendable
        else jsontext.encode(with_small_media(received, MAX_INLINE_MEDIA_BYTES))
    )
    reason = finish_reason if isinstance(finish_reason, str) else None
    return _choice(index, sendable, wire, reason, complete=complete)


def text_choice(index: int, text: str, finish_reason: str | None) -> Choice:
    """A choice of a complete message that is only text."""
    message = {"role": "assistant", "content": text}
    return _choice(index, message, None, finish_reason, complete=True)


def _choice(
    index: int,
    message: Mapping[str, object],
    wire: bytes | None,
    finish_reason: str | None,
    *,
    complete: bool,
) -> Choice:
    body = jsontext.encode(message)
    parsed = read_stored(body)
    return Choice(
        index=index,
        body=body,
        wire=wire,
        calls=parsed.calls,
        text=parsed.text,
        digest=parsed.digest,
        blank=parsed.blank,
        finish_reason=finish_reason,
        complete=complete and finish_reason != "error",
        shape=parsed.shape,
    )


def _canonical_fields(message: Mapping[str, object], logprobs: object) -> dict[str, object]:
    """The fields of a message in canonical order, without null and empty ones."""
    fields = {key: message[key] for key in (*_ORDER, *sorted(message)) if message.get(key)}
    if logprobs:
        fields["logprobs"] = logprobs
    calls = fields.get("tool_calls")
    if isinstance(calls, list):
        fields["tool_calls"] = [_canonical_call(call) for call in calls if isinstance(call, dict)]
    function = fields.get("function_call")
    if isinstance(function, dict):
        fields["function_call"] = _canonical_function(function)
    return {"role": "assistant", "content": _empty_content(fields), **fields}


def _empty_content(fields: Mapping[str, object]) -> str | None:
    """The content of a message without any: null if it has a refusal, audio or calls, else ""."""
    others = ("refusal", "audio", "function_call", "tool_calls")
    return None if any(key in fields for key in others) else ""


def _canonical_call(call: Mapping[str, object]) -> dict[str, object]:
    """A tool call without its ``index``; unknown fields are kept, since some upstreams demand
    theirs back (signatures of reasoning, for example)."""
    order = ("id", "type", "function", *sorted(call))
    fields = {key: call[key] for key in order if key != "index" and call.get(key) is not None}
    function = fields.get("function")
    if isinstance(function, dict):
        fields = {"id": "", "type": "function", **fields, "function": _canonical_function(function)}
    return fields


def _canonical_function(function: Mapping[str, object]) -> dict[str, object]:
    """A function with arguments as text; some upstreams send an object."""
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = jsontext.encode(arguments).decode()
    rest = {key: function[key] for key in sorted(function) if function[key] is not None}
    required = {"name": function.get("name") or "", "arguments": arguments or ""}
    return {**required, **rest, **required}


def _sendable_message(received: Mapping[str, object], *, complete: bool) -> dict[str, object]:
    """The message that later requests may send back; only the text of one that was cut off."""
    names = _ORDER if complete else ("role", "content", "refusal", "name")
    sendable = {key: received[key] for key in names if key in received}
    sendable["content"] = _without_reasoning(received["content"])
    transcript = transcript_of(received)
    audio = sendable.pop("audio", None)
    if isinstance(audio, dict) and audio.get("id"):
        sendable["audio"] = {"id": audio["id"]}
    elif not sendable["content"]:
        sendable["content"] = transcript
    ordered = {key: sendable[key] for key in _ORDER if key in sendable}
    ordered["content"] = sendable["content"] or _empty_content(ordered)
    return with_transcript(ordered, transcript) if transcript and "audio" in ordered else ordered


def _without_reasoning(content: object) -> object:
    """Content parts without reasoning; a single text part is a string."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    parts = [p for p in content if not (isinstance(p, dict) and p.get("type") in REASONING)]
    if len(parts) == 1 and isinstance(parts[0], dict) and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts
