"""Separates media and encrypted data from text in parts of other APIs.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat.media.parts import InlineMedia, inline_media, media_from_url
from proxy.chat.media.tokens import media_tokens

_IMAGES = ("image", "input_image", "computer_screenshot", "image_generation_call")
_FILES = ("document", "input_file")
_BASE64_FIELDS = ("data", "file_data", "result")
"""Fields whose base64 need not be a ``data:`` URL."""

_MEDIA_FIELDS = (
    *_BASE64_FIELDS,
    "image_url",
    "file_url",
    "file_id",
    "url",
    "source",
    "file",
    "input_audio",
)
_TEXT_SOURCES = ("text", "content")
"""Types of a document's source that are text."""

_ENCRYPTED_PREFIX = "encrypted_"
"""Prefix of fields with text that only the upstream can read: search results, compacted turns."""

CHARACTERS_OF_3_TOKENS = 16
"""Base64 characters of encrypted text that count as three tokens: 12 bytes, 4 bytes a token."""


def without_media(value: object, tokens: list[int]) -> object:
    """The value without media and encrypted data; the tokens of each are appended to ``tokens``."""
    if isinstance(value, str):
        return _without_data_url(value, tokens)
    if isinstance(value, list):
        return [without_media(item, tokens) for item in value]
    if not isinstance(value, dict):
        return value
    part_tokens = _tokens(value)
    if part_tokens is None:
        return {key: _field_without_media(key, item, tokens) for key, item in value.items()}
    tokens.append(part_tokens)
    return {k: without_media(v, tokens) for k, v in value.items() if k not in _MEDIA_FIELDS}


def _field_without_media(key: str, value: object, tokens: list[int]) -> object:
    if key.startswith(_ENCRYPTED_PREFIX) and isinstance(value, str):
        tokens.append(-(-3 * len(value) // CHARACTERS_OF_3_TOKENS))
        return ""
    return without_media(value, tokens)


def _without_data_url(text: str, tokens: list[int]) -> str:
    media = media_from_url(text, "")
    if media is None:
        return text
    tokens.append(_tokens_by_media_type(media))
    return ""


def _tokens(part: Mapping[str, object]) -> int | None:
    """Tokens of a part or source that is media; None for any other."""
    kind = part.get("type")
    if kind == "base64":  # the source in a block of an unknown type
        media = _inline_media(part)
        return _tokens_by_media_type(media) if media else None
    source = part.get("source")
    if kind in _IMAGES:
        return media_tokens({**part, "type": "image"}, _inline_media(part))
    if kind in _FILES:
        is_text = isinstance(source, dict) and source.get("type") in _TEXT_SOURCES
        return None if is_text else media_tokens({"type": "file"}, _inline_media(part))
    return media_tokens(part, inline_media(part))


def _tokens_by_media_type(media: InlineMedia) -> int:
    kind = "image" if media.kind.startswith("image/") else "file"
    return media_tokens({"type": kind}, media) or 0


def _inline_media(part: Mapping[str, object]) -> InlineMedia | None:
    """Its inline media; None for a link or an id."""
    source = part.get("source")
    holder = source if isinstance(source, dict) else part
    media_type = holder.get("media_type")
    label = media_type if isinstance(media_type, str) else ""
    candidates = (
        media_from_url(holder.get(key), label, plain_base64=key in _BASE64_FIELDS)
        for key in _MEDIA_FIELDS
    )
    return next(filter(None, candidates), None)
