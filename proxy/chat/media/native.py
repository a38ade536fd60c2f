"""What in another API's parts is no text: media, and what only its upstream can read.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.chat.media.parts import Inline, from_url, inline
from proxy.chat.media.tokens import media_tokens

_IMAGES = ("image", "input_image", "computer_screenshot", "image_generation_call")
_FILES = ("document", "input_file")
_BARE = ("data", "file_data", "result")
"""Fields with base64 that need not be a ``data:`` URL."""

_CARRYING = (*_BARE, "image_url", "file_url", "file_id", "url", "source", "file", "input_audio")
_LEGIBLE = ("text", "content")
"""Types of a document's source that a model reads as it stands."""

_SEALED = "encrypted_"
"""How fields begin in which the upstream keeps text for itself: pages found, what it compacted."""

SEALED_CHARACTERS = 16
"""Base64 characters of encrypted text that are three tokens: three bytes in four of them, and some
four bytes a token."""


def without_media(value: object, found: list[int]) -> object:
    """A value without media and what is encrypted; the tokens of each are added to ``found``."""
    if isinstance(value, str):
        return _without_url(value, found)
    if isinstance(value, list):
        return [without_media(item, found) for item in value]
    if not isinstance(value, dict):
        return value
    tokens = _tokens(value)
    if tokens is None:
        return {key: _field(key, item, found) for key, item in value.items()}
    found.append(tokens)
    return {k: without_media(v, found) for k, v in value.items() if k not in _CARRYING}


def _field(key: str, value: object, found: list[int]) -> object:
    if key.startswith(_SEALED) and isinstance(value, str):
        found.append(-(-3 * len(value) // SEALED_CHARACTERS))
        return ""
    return without_media(value, found)


def _without_url(text: str, found: list[int]) -> str:
    media = from_url(text, "")
    if media is None:
        return text
    found.append(_by_type(media))
    return ""


def _tokens(part: Mapping[str, object]) -> int | None:
    """Tokens of a part or a source that is media, None for any other."""
    kind = part.get("type")
    if kind == "base64":  # a source of a kind of block that is new
        media = _media(part)
        return _by_type(media) if media else None
    source = part.get("source")
    if kind in _IMAGES:
        return media_tokens({**part, "type": "image"}, _media(part))
    if kind in _FILES:
        legible = isinstance(source, dict) and source.get("type") in _LEGIBLE
        return None if legible else media_tokens({"type": "file"}, _media(part))
    return media_tokens(part, inline(part))


def _by_type(media: Inline) -> int:
    kind = "image" if media.kind.startswith("image/") else "file"
    return media_tokens({"type": kind}, media) or 0


def _media(part: Mapping[str, object]) -> Inline | None:
    """What it carries in itself, None where that is a link or an id."""
    source = part.get("source")
    holder = source if isinstance(source, dict) else part
    name = holder.get("media_type")
    label = name if isinstance(name, str) else ""
    found = (from_url(holder.get(key), label, bare=key in _BARE) for key in _CARRYING)
    return next(filter(None, found), None)
