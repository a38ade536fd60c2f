"""What images, audio and files in a message cost, by formula: never their base64 as text."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from math import ceil

from proxy.chat.imagesize import image_size
from proxy.chat.media import Inline

LOW_DETAIL = 85
TILE = 170
"""OpenAI's guide to images: 85, and 170 for each tile of 512 x 512 pixels, after scaling down into
2048 x 2048 and then to a shorter side of 768."""

UNKNOWN_IMAGE = LOW_DETAIL + 4 * TILE
"""An image of unknown size counts as 1024 x 1024."""

AUDIO_TOKENS_PER_SECOND = 10

_BYTES_PER_SECOND = {
    "wav": 48_000,
    "pcm16": 48_000,
    "flac": 24_000,
    "opus": 6_000,
    "ogg": 6_000,
    "webm": 6_000,
}
_OTHER_AUDIO = 16_000
"""Usual rates of formats without a rate of their own, bytes per second; mp3 and aac at 128 kbit."""

FILE_BYTES_PER_TOKEN = 50
"""A page of a document is some 50 kB and, as text and picture, some 1,000 tokens."""

_HEADER = 256 * 1024
"""Base64 characters that are decoded to find an image's size; a power of two."""


def media_tokens(part: Mapping[str, object], media: Inline | None) -> int | None:
    """Tokens of an image, audio or file part with its inline media; None for other types."""
    kind = part.get("type")
    if kind in ("image_url", "input_image", "image"):
        return _image(part.get("image_url"), media)
    if kind == "input_audio":
        return _audio(part.get("input_audio"), media)
    if kind in ("file", "input_file"):
        return max(LOW_DETAIL, _size(media) // FILE_BYTES_PER_TOKEN) if media else UNKNOWN_IMAGE
    return None


def image_tokens(width: int, height: int) -> int:
    """Tokens of an image of so many pixels at high detail."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    across, down = ceil(width * scale / 512), ceil(height * scale / 512)
    return LOW_DETAIL + TILE * max(1, across) * max(1, down)


def _image(image: object, media: Inline | None) -> int:
    if isinstance(image, dict) and image.get("detail") == "low":
        return LOW_DETAIL
    size = image_size(_beginning(media)) if media else None
    return image_tokens(*size) if size else UNKNOWN_IMAGE


def _audio(audio: object, media: Inline | None) -> int:
    form = audio.get("format") if isinstance(audio, dict) else None
    rate = _BYTES_PER_SECOND.get(form, _OTHER_AUDIO) if isinstance(form, str) else _OTHER_AUDIO
    head = _beginning(media)[:44]
    if head[:4] == b"RIFF" and len(head) == 44:
        rate = int.from_bytes(head[28:32], "little") or rate
    return max(1, ceil(AUDIO_TOKENS_PER_SECOND * _size(media) / rate))


def _size(media: Inline | None) -> int:
    """Bytes that base64 stands for."""
    payload = _payload(media)
    return len(payload) * 3 // 4 - payload[-2:].count("=")


def _beginning(media: Inline | None) -> bytes:
    payload = _payload(media)[:_HEADER]
    try:
        return base64.b64decode(payload[: len(payload) // 4 * 4])
    except (binascii.Error, ValueError):  # not base64: nothing to read
        return b""


def _payload(media: Inline | None) -> str:
    if media is None:
        return ""
    return media.data.partition(",")[2] if media.data.startswith("data:") else media.data
