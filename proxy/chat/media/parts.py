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


class InlineMedia(NamedTuple):
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
    media = inline_media(part)
    return media.placeholder() if media else describe_json(part.get("type"), part)


def describe_json(kind: object, value: Mapping[str, object]) -> str:
    """The same for any JSON object; ``kind`` is its type."""
    name = jsontext.well_formed(kind)[:_MAX_NAME] if isinstance(kind, str) else "block"
    return placeholder(name, jsontext.canonical(without_marks_in_value(value)))


def inline_media(part: object) -> InlineMedia | None:
    """The inline media of a content part; None if it has none, or a link."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    content = part.get(kind) if isinstance(kind, str) else None
    if kind == "image_url":
        return media_from_url(content.get("url") if isinstance(content, dict) else content, "image")
    if not isinstance(content, dict):
        return None
    if kind == "input_audio":
        return _audio(content)
    if kind == "file":
        name = content.get("filename")
        label = name if isinstance(name, str) and name else "file"
        return media_from_url(content.get("file_data"), label, plain_base64=True)
    return media_from_url(content.get("url"), str(kind))


def _audio(inner: dict[str, object]) -> InlineMedia | None:
    data, format = inner.get("data"), inner.get("format")
    label = f"audio/{format}" if isinstance(format, str) and format else "audio"
    return InlineMedia(label, data) if isinstance(data, str) else None


def media_from_url(url: object, label: str, *, plain_base64: bool = False) -> InlineMedia | None:
    """The media in a ``data:`` URL.  Other texts are base64 if ``plain_base64``, else None.

    ``label`` is the media type if the URL has none.
    """
    if not isinstance(url, str):
        return None
    if url[:5].lower() == "data:":
        kind = url[5:261].partition(",")[0].partition(";")[0]
        return InlineMedia(kind or label, "data:" + url[5:])
    return InlineMedia(label, url) if plain_base64 else None


def without_large_media(raw: bytes, limit: int) -> bytes:
    """The message with inline media over ``limit`` characters replaced; ``raw`` itself if none is.

    Everything else keeps its bytes.
    """
    if len(raw) <= limit:
        return raw
    try:
        fields = jsontext.fields(raw)
        parts = jsontext.items(fields["content"])
        kept = [_part_without_large_media(part, limit) for part in parts]
    except (KeyError, *jsontext.UNREADABLE):  # content is text, or not there: nothing to replace
        return raw
    if kept == parts:
        return raw
    return jsontext.join_fields({**fields, "content": jsontext.join_items(kept)})


def _part_without_large_media(part: bytes, limit: int) -> bytes:
    if len(part) <= limit:
        return part
    media = inline_media(jsontext.decode(part))
    if media is None or len(media.data) <= limit:
        return part
    return jsontext.encode({"type": "text", "text": media.placeholder()})


MEDIA_AS_TEXT = 1_024
"""Larger media (characters) are removed from JSON in a text, which models cannot see as media."""


def without_media_in_text(raw: bytes) -> bytes:
    """The message, whose content is a text with JSON in it, with media in that JSON replaced."""
    try:
        fields = jsontext.fields(raw)
        decoded = jsontext.decode_shallow(str(jsontext.decode(fields["content"])).encode())
    except (KeyError, *jsontext.UNREADABLE):  # a text that only looks like JSON
        return raw
    text = jsontext.encode(with_small_media(decoded, MEDIA_AS_TEXT)).decode()
    return jsontext.join_fields({**fields, "content": jsontext.encode(text)})


def with_small_media(value: object, limit: int) -> object:
    """The value with ``data:`` URLs and audio data over ``limit`` characters replaced by text."""
    if isinstance(value, str):
        media = media_from_url(value, "data") if len(value) > limit else None
        return media.placeholder() if media else value
    if isinstance(value, list):
        return [with_small_media(item, limit) for item in value]
    if isinstance(value, dict):
        return {key: _shrunk_field(key, item, limit) for key, item in value.items()}
    return value


def _shrunk_field(key: str, value: object, limit: int) -> object:
    if key == "data" and isinstance(value, str) and len(value) > limit:
        return InlineMedia("audio", value).placeholder()
    return with_small_media(value, limit)
