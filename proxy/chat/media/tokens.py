"""Estimates the tokens of images, audio and files by formula, not by their base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from math import ceil

from proxy.chat.media.parts import InlineMedia

_SOF_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's SOF markers (ITU T.81, table B.1)."""

_BARE_MARKERS = frozenset(range(0xD0, 0xD8)) | {0x01}
"""JPEG's markers without a segment."""


def image_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in pixels of a PNG, GIF, WebP or JPEG; None if they cannot be read."""
    size = _read_size(head)
    return size if size and min(size) > 0 else None


def _read_size(head: bytes) -> tuple[int, int] | None:
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    return _jpeg(head) if head[:2] == b"\xff\xd8" else None


def _webp(head: bytes) -> tuple[int, int] | None:
    """RFC 9649, sections 2.5 to 2.7."""
    chunk = head[12:16]
    if chunk == b"VP8 ":
        return (
            int.from_bytes(head[26:28], "little") & 0x3FFF,
            int.from_bytes(head[28:30], "little") & 0x3FFF,
        )
    if chunk == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return (
            int.from_bytes(head[24:27], "little") + 1,
            int.from_bytes(head[27:30], "little") + 1,
        )
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:  # fill bytes may come before a marker
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _SOF_MARKERS:
            height, width = head[at + 5 : at + 7], head[at + 7 : at + 9]
            return int.from_bytes(width, "big"), int.from_bytes(height, "big")
        else:
            at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None


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
_DEFAULT_BYTES_PER_SECOND = 16_000
"""Typical bytes per second of formats whose rate is not read; mp3 and aac have 128 kbit/s."""

FILE_BYTES_PER_TOKEN = 50
"""A page of a document is about 50 kB and, as text and picture, about 1,000 tokens."""

_HEADER = 256 * 1024
"""Base64 characters that are decoded to find an image's size; a power of two."""


def media_tokens(part: Mapping[str, object], media: InlineMedia | None) -> int | None:
    """Tokens of an image, audio or file part with its inline media; None for other types."""
    kind = part.get("type")
    if kind in ("image_url", "input_image", "image"):
        image = part.get("image_url")
        return _image(image if isinstance(image, dict) else part, media)
    if kind == "input_audio":
        return _audio(part.get("input_audio"), media)
    if kind in ("file", "input_file"):
        return max(LOW_DETAIL, _size(media) // FILE_BYTES_PER_TOKEN) if media else UNKNOWN_IMAGE
    return None


def image_tokens(width: int, height: int) -> int:
    """Tokens of an image at high detail; ``width`` and ``height`` in pixels."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    across, down = ceil(width * scale / 512), ceil(height * scale / 512)
    return LOW_DETAIL + TILE * max(1, across) * max(1, down)


def _image(image: Mapping[str, object], media: InlineMedia | None) -> int:
    if image.get("detail") == "low":
        return LOW_DETAIL
    size = image_size(_beginning(media)) if media else None
    return image_tokens(*size) if size else UNKNOWN_IMAGE


def _audio(audio: object, media: InlineMedia | None) -> int:
    format = audio.get("format") if isinstance(audio, dict) else None
    rate = _BYTES_PER_SECOND.get(str(format), _DEFAULT_BYTES_PER_SECOND)
    head = _beginning(media)[:44]
    if head[:4] == b"RIFF" and len(head) == 44:
        rate = int.from_bytes(head[28:32], "little") or rate
    return max(1, ceil(AUDIO_TOKENS_PER_SECOND * _size(media) / rate))


def _size(media: InlineMedia | None) -> int:
    """The size of the decoded bytes."""
    payload = media.payload if media else ""
    return len(payload) * 3 // 4 - payload[-2:].count("=")


def _beginning(media: InlineMedia | None) -> bytes:
    payload = media.payload[:_HEADER] if media else ""
    try:
        return base64.b64decode(payload[: len(payload) // 4 * 4])
    except (binascii.Error, ValueError):  # not base64: nothing to read
        return b""
