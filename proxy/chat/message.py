"""A chat message: what equality, the tool rules and history need to know of it.

Knows OpenAI's message format as clients really send it, and nothing of sessions or HTTP.  Nothing
here raises: a message that makes no sense is the upstream's to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from proxy.chat import jsontext
from proxy.chat.blocks import may_have_blocks, without_blocks
from proxy.chat.cachemarks import without_marks
from proxy.chat.canonical import Content, digest, legacy_id, read_calls, read_content
from proxy.chat.media.parts import without_large_media, without_media_in_text
from proxy.chat.typed import typed_in

SYSTEM_ROLES = ("system", "developer")
ROLES = (*SYSTEM_ROLES, "user", "assistant", "tool", "function")

MAX_INLINE_MEDIA_BYTES = 65_536


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message.

    ``raw`` is its JSON as sent.  ``digest`` is equal for messages that are equal (see
    ``canonical``).  ``calls`` are the ids of its tool calls, ``answers`` is the id of the call that
    it answers; legacy functions use ``function:NAME``, a missing id is "".  ``shape`` is the digest
    without these ids, "" where there are none.  ``text`` is all its text parts joined with line
    feeds, or what stands in for them; ``ends`` is where each of several ends in it.  ``blank``:
    there is nothing in it.  A message that answers a call is never blank: an empty result is a
    result.  ``said`` is the JSON without blocks of memory, where it came with any: all but ``raw``
    is about that.  ``apart`` are its parts, where it may be several messages: of so many
    ``pieces``, at most.  ``media_in_text``: its content is JSON that may have media in it.
    """

    raw: bytes
    role: str
    digest: str
    shape: str = ""
    calls: tuple[str, ...] = ()
    answers: str | None = None
    text: str = ""
    ends: tuple[int, ...] = ()
    blank: bool = False
    said: bytes | None = None
    apart: Apart | None = None
    pieces: int = 1
    media_in_text: bool = False
    max_inline_media_bytes: int = MAX_INLINE_MEDIA_BYTES

    @property
    def own(self) -> str:
        """The text without what the user's program has put into it."""
        return self.text if self.role == "assistant" else typed_in(self.text, self.ends)

    @property
    def legible(self) -> bytes:
        """What is said, without what stands in a text and is none."""
        said = self.said or self.raw
        return without_media_in_text(said) if self.media_in_text else said

    @property
    def record(self) -> bytes:
        """What goes into history: without cache marks, and with a line of text for large media."""
        return without_large_media(without_marks(self.legible), self.max_inline_media_bytes)

    def recorded(self) -> ChatMessage:
        """The same with no more JSON than goes into history."""
        return msgspec.structs.replace(
            self, raw=self.record, said=None, apart=None, media_in_text=False
        )


Apart = Callable[[ChatMessage], Sequence[Sequence[ChatMessage]]]
"""Takes a message apart: for each part that it may have, the messages that this part is alone, with
the next one, and so on."""


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    """The common shape: nothing but text.  The other fields are what SDKs dump as null, and what an
    API says beside it (see ``native``)."""

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
    """A message from its JSON; None if this is no JSON object."""
    if may_have_blocks(raw):
        said = without_blocks(raw)
        message = _read_message(said, max_inline_media_bytes)
        return message and msgspec.structs.replace(message, raw=raw, said=said)
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
    """A message from history, or one of an upstream; never None, and nothing in it is replaced."""
    limit = len(raw)
    return read_message(raw, limit) or _opaque(raw, limit)


Piece = ChatMessage | bytes
"""A message of a conversation as it is sent: one of the request's, or the JSON of a stored one."""


def last_user(pieces: Sequence[Piece]) -> int | None:
    """Where the last user message is."""
    for at in range(len(pieces) - 1, -1, -1):
        piece = pieces[at]
        if isinstance(piece, ChatMessage):
            found = piece.role == "user"
        else:
            found = b'"user"' in piece and read_stored(piece).role == "user"
        if found:
            return at
    return None


def text_of(raw: bytes) -> str:
    """The text of a message."""
    try:
        return _plain.decode(raw).content
    except jsontext.UNREADABLE:
        return read_stored(raw).text


class Own(NamedTuple):
    """What somebody has said themselves, and its share of all the text of the message."""

    text: str
    share: float = 1.0


def own_of(raw: bytes) -> Own:
    """What is found, recalled and learned of a message."""
    try:
        plain = _plain.decode(raw)
        text, own = plain.content, plain.content
        if plain.role != "assistant":
            own = typed_in(text)
    except jsontext.UNREADABLE:
        message = read_stored(raw)
        text, own = message.text, message.own
    return Own(own) if len(own) >= len(text) else Own(own.strip(), len(own) / len(text))


def own_text_of(raw: bytes) -> str:
    return own_of(raw).text


def _read_any(raw: bytes, limit: int) -> ChatMessage | None:
    try:
        value = jsontext.value(raw)
        return _read(raw, value, limit) if isinstance(value, dict) else None
    except RecursionError:
        return _opaque(raw, limit)
    except ValueError:
        return None


def _opaque(raw: bytes, limit: int) -> ChatMessage:
    """A message that cannot be looked into equals nothing but the same bytes."""
    return ChatMessage(raw=raw, role="", digest=digest("", "", raw), max_inline_media_bytes=limit)


def _read(raw: bytes, fields: dict[str, object], limit: int) -> ChatMessage:
    role = _role(fields.get("role"))
    content = _said(fields)
    calls = read_calls(fields)
    answers = _answers(role, fields)
    ids = bool(calls) or answers is not None
    return ChatMessage(
        raw=raw,
        role=role,
        digest=digest(role, content.core, content.rest(calls, answers)),
        shape=digest(role, content.core, content.rest_without_ids(calls)) if ids else "",
        calls=tuple(call.id for call in calls if call.id is not None),
        answers=answers,
        text=content.text,
        ends=content.ends,
        blank=content.empty and not calls and answers is None,
        max_inline_media_bytes=limit,
    )


def _role(role: object) -> str:
    if role is None:
        return ""
    return jsontext.well_formed(role if isinstance(role, str) else repr(role))


def _said(fields: dict[str, object]) -> Content:
    """The content; where it says nothing, the refusal or the audio that stands in for it."""
    content = read_content(fields.get("content"))
    if not content.empty:
        return content
    refusal, audio = fields.get("refusal"), fields.get("audio")
    if refusal:
        return read_content([{"type": "refusal", "refusal": refusal}])
    if isinstance(audio, dict):
        return read_content([{"type": "audio", "id": audio.get("id")}])
    return content


def _answers(role: str, fields: dict[str, object]) -> str | None:
    if role == "function":
        return legacy_id(fields.get("name"))
    id = jsontext.text_in(fields.get("tool_call_id"))
    return id if id or role == "tool" else None
