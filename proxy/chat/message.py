"""A chat message, with what reconciliation, the tool rules and history need of it.

Knows OpenAI's message format as clients really send it, and nothing of sessions or HTTP.  Nothing
here raises: an invalid message is left to the upstream to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import may_have_blocks, without_blocks
from proxy.chat.cachemarks import without_marks
from proxy.chat.canonical import Content, digest, legacy_id, read_calls, read_content
from proxy.chat.media.parts import without_large_media, without_media_in_text
from proxy.chat.native import transcript_of
from proxy.chat.typed import typed_part, typed_parts

SYSTEM_ROLES = ("system", "developer")
ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool", "function")

MAX_INLINE_MEDIA_BYTES = 65_536


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message.  All fields but ``raw`` are those of ``chat_json``, if there is one."""

    raw: bytes
    """Its JSON as sent."""
    chat_json: bytes | None = None
    """Its JSON without memory blocks, and as chat completions have it; None if that is ``raw``."""
    role: str

    # Equality
    digest: str
    """The same for equal messages, see ``canonical``."""
    shape: str = ""
    """The digest without the ids of calls, "" if there are none."""

    # Tool calls, by their ids.  A legacy function's is ``function:NAME``, a missing one is "".
    calls: tuple[str, ...] = ()
    """The calls that it makes."""
    answers: str | None = None
    """The call that it answers."""

    # Content
    text: str = ""
    """All text parts joined with line feeds, or a refusal."""
    part_ends: tuple[int, ...] = ()
    """Where each part ends in ``text``, in characters, if there are several."""
    blank: bool = False
    """It has no content.  Never true of one that answers a call: an empty result is a result."""

    # Some clients join several answers to one message
    splitter: Splitter | None = None
    """Splits it; None if it is certainly one message."""
    max_parts: int = 1
    """An upper bound of the number of messages in it."""

    # Media
    media_in_text: bool = False
    """Its content is JSON that may have media in it."""
    max_inline_media_bytes: int = MAX_INLINE_MEDIA_BYTES
    """Larger media are not recorded."""

    @property
    def typed_text(self) -> str:
        """The text without what the user's program has added: see ``typed``."""
        return self.text if self.role == "assistant" else typed_parts(self.text, self.part_ends)

    @property
    def clean_json(self) -> bytes:
        """The JSON without memory blocks, and without media in a text."""
        message_json = self.chat_json or self.raw
        return without_media_in_text(message_json) if self.media_in_text else message_json

    @property
    def record(self) -> bytes:
        """The JSON that is recorded: without cache marks, with large media replaced by text."""
        return without_large_media(without_marks(self.clean_json), self.max_inline_media_bytes)

    def recorded(self) -> ChatMessage:
        """The message with its ``record`` as its JSON."""
        return msgspec.structs.replace(
            self, raw=self.record, chat_json=None, splitter=None, media_in_text=False
        )


Splitter = Callable[[ChatMessage], Sequence[Sequence[ChatMessage]]]
"""Splits a message: for each of its parts, the messages that begin with it and have one, two and
more parts."""


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    """The common shape: only text.  The other fields are those that SDKs dump as null, and those
    of another API (see ``native``)."""

    role: str
    content: str
    name: str | None = None
    refusal: None = None
    audio: None = None
    annotations: None = None
    function_call: None = None
    tool_calls: None = None
    native: msgspec.Raw = jsontext.NULL


_plain = msgspec.json.Decoder(_Plain)


def read_message(
    raw: bytes, max_inline_media_bytes: int = MAX_INLINE_MEDIA_BYTES
) -> ChatMessage | None:
    """Read a message; None if ``raw`` is not a JSON object."""
    if may_have_blocks(raw):
        clean = without_blocks(raw)
        message = _read_message(clean, max_inline_media_bytes)
        return message and msgspec.structs.replace(message, raw=raw, chat_json=clean)
    return _read_message(raw, max_inline_media_bytes)


def _read_message(raw: bytes, max_inline_media_bytes: int) -> ChatMessage | None:
    try:
        plain = _plain.decode(raw)
    except jsontext.UNREADABLE:  # another shape, or not JSON at all
        return _read_any(raw, max_inline_media_bytes)
    if plain.role in ("function", "tool"):
        return _read_any(raw, max_inline_media_bytes)
    text = plain.content
    core = text.strip()
    return ChatMessage(
        raw=raw,
        role=plain.role,
        digest=digest(plain.role, core),
        text=text,
        blank=not core,
        max_inline_media_bytes=max_inline_media_bytes,
    )


def read_stored(raw: bytes) -> ChatMessage:
    """Read a message from history or from an upstream; no media in it are replaced."""
    limit = len(raw)
    return read_message(raw, limit) or _opaque(raw, limit)


Piece = ChatMessage | bytes
"""A message of a conversation as it is sent: one of the request's, or the JSON of a stored one."""


def last_user_index(pieces: Sequence[Piece]) -> int | None:
    """The index of the last user message, None if there is none."""
    for at in range(len(pieces) - 1, -1, -1):
        piece = pieces[at]
        if isinstance(piece, ChatMessage):
            is_user = piece.role == "user"
        else:
            is_user = b'"user"' in piece and read_stored(piece).role == "user"
        if is_user:
            return at
    return None


def text_of(raw: bytes) -> str:
    try:
        return _plain.decode(raw).content
    except jsontext.UNREADABLE:
        return read_stored(raw).text


def typed_text_of(raw: bytes) -> tuple[str, float]:
    """The text that the author has typed in a message (JSON), which is indexed, recalled and
    learned from, and its share of the message's text."""
    try:
        plain = _plain.decode(raw)
        text, typed = plain.content, plain.content
        if plain.role != "assistant":
            typed = typed_part(text)
    except jsontext.UNREADABLE:
        message = read_stored(raw)
        text, typed = message.text, message.typed_text
    if len(typed) >= len(text):
        return typed, 1.0
    return typed.strip(), len(typed) / len(text)


def typed_string_of(raw: bytes) -> str:
    return typed_text_of(raw)[0]


def _read_any(raw: bytes, limit: int) -> ChatMessage | None:
    try:
        value = jsontext.value(raw)
        return _read(raw, value, limit) if isinstance(value, dict) else None
    except RecursionError:
        return _opaque(raw, limit)
    except ValueError:
        return None


def _opaque(raw: bytes, limit: int) -> ChatMessage:
    """A message that cannot be parsed; it equals only the same bytes."""
    return ChatMessage(raw=raw, role="", digest=digest("", "", raw), max_inline_media_bytes=limit)


def _read(raw: bytes, fields: dict[str, object], limit: int) -> ChatMessage:
    role = _role(fields.get("role"))
    content = _main_content(fields)
    calls = read_calls(fields)
    answers = _answered_call(role, fields)
    has_ids = bool(calls) or answers is not None
    return ChatMessage(
        raw=raw,
        role=role,
        digest=digest(role, content.core, content.rest(calls, answers)),
        shape=digest(role, content.core, content.rest_without_ids(calls)) if has_ids else "",
        calls=tuple(call.id for call in calls if call.id is not None),
        answers=answers,
        text=content.text,
        part_ends=content.ends,
        blank=content.is_empty and not calls and answers is None,
        max_inline_media_bytes=limit,
    )


def _role(role: object) -> str:
    if role is None:
        return ""
    return jsontext.well_formed(role if isinstance(role, str) else repr(role))


def _main_content(fields: dict[str, object]) -> Content:
    """The content; if that is empty, the refusal or the audio in its place."""
    content = read_content(fields.get("content"))
    if not content.is_empty:
        return content
    refusal, audio = fields.get("refusal"), fields.get("audio")
    if refusal:
        return read_content([{"type": "refusal", "refusal": refusal}])
    if isinstance(audio, dict):
        audio_content = read_content([{"type": "audio", "id": audio.get("id")}])
        return msgspec.structs.replace(audio_content, text=transcript_of(fields))
    return content


def _answered_call(role: str, fields: dict[str, object]) -> str | None:
    if role == "function":
        return legacy_id(fields.get("name"))
    id = jsontext.text_in(fields.get("tool_call_id"))
    return id if id or role == "tool" else None
