"""Replaces large inline media (base64) in messages by a line of text; links are kept."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from proxy.chat import jsontext
from proxy.chat.cachemarks import without_marks_in_value

_MAX_NAME = 64


class Inline(NamedTuple):
    """Media in a message: its media type (or format) and its base64 or data URL."""

    kind: str
    data: str

    @property
    def payload(self) -> str:
        """The base64 alone."""
        return self.data.partition(",")[2] if self.data.startswith("data:") else self.data

    def decoded(self) -> bytes:
        """The decoded bytes; those of the text itself if it is not base64."""
        payload = self.payload
        try:
            return base64.b64decode(payload)
        except (binascii.Error, ValueError):
            return payload.encode("utf-8", "surrogatepass")

    def placeholder(self) -> str:
        """The text that history has in its place."""
        return placeholder(self.kind, self.decoded())


def placeholder(kind: str, content: bytes) -> str:
    """A line of text in place of media: type, size, the beginning of its SHA-256."""
    return f"[{kind}, {len(content)} bytes, sha256 {sha256(content).hexdigest()[:16]}]"


def describe_part(part: object) -> str:
    """A line of text for a content part that is no text."""
    if not isinstance(part, dict):
        return describe_json("part", {"part": part})
    media = inline(part)
    return media.placeholder() if media else describe_json(part.get("type"), part)


def describe_json(kind: object, said: Mapping[str, object]) -> str:
    """The same by the JSON of what it is."""
    name = jsontext.well_formed(kind)[:_MAX_NAME] if isinstance(kind, str) else "block"
    return placeholder(name, jsontext.canonical(without_marks_in_value(said)))


def inline(part: object) -> Inline | None:
    """The inline media of a content part; None if it has none, or a link."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) else None
    if kind == "image_url":
        return inline_from_url(inner.get("url") if isinstance(inner, dict) else inner, "image")
    if not isinstance(inner, dict):
        return None
    if kind == "input_audio":
        return _audio(inner)
    if kind == "file":
        name = inner.get("filename")
        label = name if isinstance(name, str) and name else "file"
        return inline_from_url(inner.get("file_data"), label, bare=True)
    return inline_from_url(inner.get("url"), str(kind))


def _audio(inner: dict[str, object]) -> Inline | None:
    data, form = inner.get("data"), inner.get("format")
    label = f"audio/{form}" if isinstance(form, str) and form else "audio"
    return Inline(label, data) if isinstance(data, str) else None


def inline_from_url(url: object, label: str, *, bare: bool = False) -> Inline | None:
    """The media of a ``data:`` URL, or with ``bare`` also of plain base64; else None.

    ``label`` is the kind of media whose URL names none.
    """
    if not isinstance(url, str):
        return None
    if url[:5].lower() == "data:":
        kind = url[5:261].partition(",")[0].partition(";")[0]
        return Inline(kind or label, "data:" + url[5:])
    return Inline(label, url) if bare else None


def without_large_media(raw: bytes, limit: int) -> bytes:
    """The message with inline media over ``limit`` characters replaced; ``raw`` itself if none is.

    Everything else keeps its bytes.
    """
    if len(raw) <= limit:
        return raw
    try:
        fields = jsontext.fields(raw)
        parts = jsontext.items(fields["content"])
        kept = [_shortened(part, limit) for part in parts]
    except (KeyError, *jsontext.UNREADABLE):  # content is text, or not there: nothing to replace
        return raw
    if kept == parts:
        return raw
    return jsontext.join_fields({**fields, "content": jsontext.join_items(kept)})


def _shortened(part: bytes, limit: int) -> bytes:
    if len(part) <= limit:
        return part
    media = inline(jsontext.decode(part))
    if media is None or len(media.data) <= limit:
        return part
    return jsontext.encode({"type": "text", "text": media.placeholder()})


MEDIA_AS_TEXT = 1_024
"""Larger media (characters) are removed from JSON in a text, which models cannot see as media."""


def without_media_in_text(raw: bytes) -> bytes:
    """The message, whose content is JSON in a text, with media in that JSON replaced by lines."""
    try:
        fields = jsontext.fields(raw)
        told = jsontext.decode_shallow(str(jsontext.decode(fields["content"])).encode())
    except (KeyError, *jsontext.UNREADABLE):  # a text that only looks like it
        return raw
    text = jsontext.encode(with_small_media(told, MEDIA_AS_TEXT)).decode()
    return jsontext.join_fields({**fields, "content": jsontext.encode(text)})


def with_small_media(value: object, limit: int) -> object:
    """The value with ``data:`` URLs and audio data over ``limit`` characters replaced by text."""
    if isinstance(value, str):
        media = inline_from_url(value, "data") if len(value) > limit else None
        return media.placeholder() if media else value
    if isinstance(value, list):
        return [with_small_media(item, limit) for item in value]
    if isinstance(value, dict):
        return {key: _shrunk_field(key, item, limit) for key, item in value.items()}
    return value


def _shrunk_field(key: str, value: object, limit: int) -> object:
    if key == "data" and isinstance(value, str) and len(value) > limit:
        return Inline("audio", value).placeholder()
    return with_small_media(value, limit)
