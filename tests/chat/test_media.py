from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256

import pytest

from proxy.chat.media.parts import with_small_media
from proxy.chat.message import read_message, read_stored

LARGE = bytes(range(256)) * 300
MARK = sha256(LARGE).hexdigest()[:16]
URL = "data:image/png;base64," + b64encode(LARGE).decode()


def recorded(part: object, limit: int = 65_536) -> object:
    raw = json.dumps({"role": "user", "x": 1.0, "content": [{"type": "text", "text": "é"}, part]})
    message = read_message(raw.encode(), limit)
    assert message is not None
    parts = json.loads(message.record)["content"]
    assert parts[0] == {"type": "text", "text": "é"}
    return parts[1]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url", "image_url": {"url": URL, "detail": "high"}}, "image/png"),
        ({"type": "image_url", "image_url": {"url": URL.replace("data:", "DATA:")}}, "image/png"),
        ({"type": "image_url", "image_url": URL}, "image/png"),
        (
            {"type": "input_audio", "input_audio": {"data": URL[22:], "format": "wav"}},
            "audio/wav",
        ),
        ({"type": "file", "file": {"file_data": URL, "filename": "a.png"}}, "image/png"),
        ({"type": "file", "file": {"file_data": URL[22:], "filename": "a.pdf"}}, "a.pdf"),
        (
            {"type": "video_url", "video_url": {"url": URL.replace("image/png", "video/mp4")}},
            "video/mp4",
        ),
    ],
    ids=["image", "upper case", "bare URL", "audio", "file URL", "file base64", "video"],
)
def test_large_media_are_recorded_as_type_size_and_hash(part: object, kind: str) -> None:
    expected = f"[{kind}, {len(LARGE)} bytes, sha256 {MARK}]"
    assert recorded(part) == {"type": "text", "text": expected}


def test_data_that_is_no_base64_is_measured_as_text() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/svg+xml,é" + "x" * 70_000}}
    placeholder = recorded(part)
    assert isinstance(placeholder, dict)
    assert "image/svg+xml" in placeholder["text"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/" + "x" * 70_000}},
        {"type": "text", "text": URL},
        {"type": "file", "file": {"file_id": "f" * 70_000}},
        {"type": ["x"], "image_url": URL},
        {"type": "input_audio", "input_audio": "x" * 70_000},
        "x" * 70_000,
    ],
    ids=["link", "text", "file id", "odd type", "odd audio", "string"],
)
def test_everything_else_is_recorded_as_it_is(part: object) -> None:
    assert recorded(part) == part


def test_the_limit_is_the_length_of_the_url() -> None:
    part = {"type": "image_url", "image_url": {"url": URL}}
    assert recorded(part, len(URL)) == part
    assert recorded(part, len(URL) - 1) != part


def test_bytes_outside_the_replaced_part_stay() -> None:
    raw = (
        b'{ "role" : "user", "n": 1.0, "content": [ {"type":"text", "text":"\\u00e9"} ,'
        b'{"type":"image_url","image_url":{"url":"' + URL.encode() + b'"}} ] , "z": 1e2 }'
    )
    message = read_message(raw, 65_536)
    assert message is not None
    assert message.raw == raw
    head, tail = message.record.split(b',{"type":"text","text":"[image/png')
    assert head == b'{"role":"user","n":1.0,"content":[{"type":"text", "text":"\\u00e9"}'
    assert tail.endswith(b']"}],"z":1e2}')


def test_equality_means_the_original_and_stored_messages_are_left_alone() -> None:
    small, large = (
        json.dumps({"role": "user", "content": [{"type": "image_url", "image_url": {"url": u}}]})
        for u in (URL, URL[:-8] + "AAAAAAA=")
    )
    first, second = read_message(small.encode(), 10), read_message(large.encode(), 10)
    assert first is not None and second is not None
    assert first.digest != second.digest
    assert first.digest == read_stored(small.encode()).digest
    assert read_stored(small.encode()).record == small.encode()


def test_any_value_loses_its_large_data() -> None:
    value = {"a": [{"url": URL}], "data": "x" * 99, "b": URL[:50], "n": 1}
    small = with_small_media(value, 60)
    assert isinstance(small, dict)
    assert small["a"][0]["url"].startswith("[image/png, 76800 bytes")
    assert small["data"].startswith("[audio, ")
    assert (small["b"], small["n"]) == (URL[:50], 1)
