from __future__ import annotations

import struct
from base64 import b64encode

import pytest

from proxy.chat.media.parts import inline_media
from proxy.chat.media.tokens import image_size, image_tokens, media_tokens

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1024, 512) + b"\x08\x06\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 1024, 512) + b"\0\0\0"
APP1 = b"\xff\xe1" + struct.pack(">H", 1_002) + b"x" * 1_000
SOF = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 512, 1024) + b"\x03"
JPEG = b"\xff\xd8" + APP1 + b"\xff\xff\xdb\x00\x04xx" + SOF
VP8 = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 1024, 512)
VP8L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 1023 | 511 << 14) + b"\0" * 9
VP8X = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + b"\xff\x03\0" + b"\xff\x01\0"


@pytest.mark.parametrize(
    "head",
    [PNG, GIF, JPEG, VP8, VP8L, VP8X],
    ids=["png", "gif", "jpeg", "webp lossy", "webp lossless", "webp extended"],
)
def test_the_size_of_an_image_is_read_from_its_header(head: bytes) -> None:
    assert image_size(head) == (1024, 512)


@pytest.mark.parametrize("head", [PNG, GIF, JPEG, VP8, VP8L, VP8X])
def test_a_header_cut_short_has_no_size_and_raises_nothing(head: bytes) -> None:
    for length in range(len(head) - 2):
        assert image_size(head[:length]) in (None, (1024, 512))
    assert image_size(head[:8]) is None


@pytest.mark.parametrize(
    "head",
    [b"", b"BM" + b"\0" * 40, b"\xff\xd8" + b"\xff\xe0\0\0" * 50, PNG[:16] + b"\0" * 8],
    ids=["nothing", "bmp", "empty segments", "no pixels"],
)
def test_other_files_have_no_size(head: bytes) -> None:
    assert image_size(head) is None


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [
        (512, 512, 255),
        (1024, 1024, 765),
        (2048, 4096, 1105),
        (100, 100, 255),
        (513, 100, 425),
        (10_000, 1, 765),
    ],
)
def test_an_image_costs_its_tiles_after_scaling(width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height) == tokens


def tokens(part: dict[str, object]) -> int | None:
    return media_tokens(part, inline_media(part))


def image(data: bytes, **more: object) -> dict[str, object]:
    url = "data:image/png;base64," + b64encode(data).decode()
    return {"type": "image_url", "image_url": {"url": url, **more}}


def test_an_image_costs_by_its_size_where_that_can_be_read() -> None:
    assert tokens(image(PNG)) == 85 + 2 * 170
    assert tokens(image(PNG, detail="high")) == 85 + 2 * 170
    assert tokens(image(PNG, detail="low")) == 85
    assert tokens(image(b"?" * 100)) == 765
    assert tokens({"type": "image_url", "image_url": {"url": "https://x/y.png"}}) == 765
    assert tokens({"type": "image_url", "image_url": {"url": "data:image/png,%%%"}}) == 765


def audio(data: bytes, form: str) -> dict[str, object]:
    return {
        "type": "input_audio",
        "input_audio": {"data": b64encode(data).decode(), "format": form},
    }


def test_audio_costs_ten_tokens_a_second() -> None:
    assert tokens(audio(b"x" * 32_000, "mp3")) == 20
    assert tokens(audio(b"x" * 96_000, "wav")) == 20
    slow = b"RIFF" + b"\0" * 24 + struct.pack("<I", 16_000) + b"\0" * 12
    assert tokens(audio(slow + b"\0" * (32_000 - len(slow)), "wav")) == 20
    assert tokens({"type": "input_audio", "input_audio": {}}) == 1
    assert tokens({"type": "input_audio", "input_audio": {"format": []}}) == 1


def test_a_file_costs_by_its_size() -> None:
    data = b64encode(b"x" * 50_000).decode()
    assert tokens({"type": "file", "file": {"file_data": data}}) == 1_000
    assert tokens({"type": "file", "file": {"file_data": "QQ=="}}) == 85
    assert tokens({"type": "file", "file": {"file_id": "f1"}}) == 765


def test_other_parts_have_no_formula() -> None:
    assert tokens({"type": "text", "text": "x"}) is None
    assert tokens({"type": ["image_url"]}) is None
