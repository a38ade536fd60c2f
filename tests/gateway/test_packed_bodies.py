"""Request bodies that come compressed are read, within what a plain one may be."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.support.rig import Rig, Talk, rig
from tests.support.talk.responding import ItemTalk

pytestmark = pytest.mark.asyncio(loop_scope="session")


def zstd(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(raw)


def in_frames(raw: bytes) -> bytes:
    return b"".join(zstd(raw[at : at + 40]) for at in range(0, len(raw), 40))


PACKED: dict[str, tuple[str, Any]] = {
    "gzip": ("gzip", gzip.compress),
    "gzip-in-members": ("GZip", lambda raw: gzip.compress(raw[:9]) + gzip.compress(raw[9:])),
    "deflate": ("deflate", zlib.compress),
    "zstd": ("zstd", zstd),
    "zstd-in-frames": ("zstd", in_frames),
}


def chat(text: str) -> bytes:
    said = [{"role": "user", "content": text}]
    return json.dumps({"model": "m", "messages": said}).encode()


@pytest.mark.parametrize(("coding", "pack"), PACKED.values(), ids=PACKED)
async def test_a_packed_chat_has_memory(one: Rig, coding: str, pack: Any) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    answered = await talk.post(pack(chat("u2")), content_encoding=coding)
    assert answered.headers["x-memory-status"] == "applied"
    sent = one.up.requests[-1]
    assert [m["content"] for m in sent.messages][-1] == "u2"
    assert (len(sent.messages), sent.header("content-encoding")) == (3, None)


@pytest.mark.parametrize(("coding", "pack"), PACKED.values(), ids=PACKED)
async def test_nothing_to_add_and_it_goes_as_it_came(one: Rig, coding: str, pack: Any) -> None:
    one.up.strict = False
    talk = one.talk()
    body = pack(chat("u1"))
    await talk.post(body, content_encoding=coding)
    assert one.up.requests[-1].body == body
    assert one.up.requests[-1].header("content-encoding") == coding
    assert (await talk.bodies())[0] == {"role": "user", "content": "u1"}


async def test_a_packed_response_has_memory_too(one: Rig) -> None:
    talk = ItemTalk.of(one)
    await talk.say("u1", "a1")
    body = zstd(json.dumps({"model": "gpt-5", "input": "u2"}).encode())
    await talk.post(body, content_encoding="zstd")
    assert talk.sent == "u1 a1 u2"


async def test_a_body_whose_coding_is_no_coding_has_memory(one: Rig) -> None:
    talk = one.talk()
    await talk.say("u1", "a1")
    await talk.post(chat("u2"), content_encoding="utf-8")
    assert talk.sent == "u1 a1 u2"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
async def test_a_body_with_a_byte_order_mark_has_memory(one: Rig, pack: Any) -> None:
    one.up.strict = False
    talk = one.talk(**({} if pack is bytes else {"content-encoding": "gzip"}))
    body = pack(b"\xef\xbb\xbf" + chat("u1"))
    await talk.post(body)
    assert one.up.requests[-1].body == body
    await talk.post(pack(b"\xef\xbb\xbf" + chat("u2")))
    said = [message["content"] for message in one.up.requests[-1].messages]
    assert (len(said), said[0], said[-1]) == (3, "u1", "u2")


BROKEN = {
    "not-gzip": ("gzip", b"hello"),
    "gzip-cut": ("gzip", gzip.compress(chat("u2"))[:-9]),
    "zstd-garbage": ("zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 50),
    "empty": ("gzip", b""),
    "a-window-without-measure": ("zstd", b"\x28\xb5\x2f\xfd\x00\xff" + bytes(50)),
}


@pytest.mark.parametrize(("coding", "body"), BROKEN.values(), ids=BROKEN)
async def test_what_is_not_packed_as_it_says_is_the_upstreams_affair(
    one: Rig, coding: str, body: bytes
) -> None:
    one.up.strict = False
    talk = one.talk()
    answered = await talk.post(body, content_encoding=coding)
    assert answered.headers["x-memory-reason"] == "encoded_body"
    assert one.up.requests[-1].body == body
    assert await talk.log() == ""


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
async def test_little_that_becomes_a_lot_is_refused(tmp_path: Path, pack: Any) -> None:
    async with rig(tmp_path, server__max_body_bytes=100_000) as one:
        one.up.strict = False  # it reads nothing that is packed
        talk = one.talk()
        bomb = pack(chat("0" * 50_000_000))
        assert len(bomb) < 100_000
        coding = "gzip" if pack is gzip.compress else "zstd"
        answered = await talk.post(bomb, content_encoding=coding)
        assert (answered.status_code, answered.json()["error"]["code"]) == (
            413,
            "request_too_large",
        )
        assert not one.up.requests
        fits = await talk.post(pack(chat("0" * 90_000)), content_encoding=coding)
        assert fits.status_code == 200


async def test_without_a_session_nothing_is_unpacked(one: Rig) -> None:
    one.up.strict = False
    body = zstd(chat("0" * 50_000_000))
    talk = Talk(one, "")
    headers = {"authorization": "Bearer sk-test", "content-encoding": "zstd"}
    answered = await one.client.post(talk.path, content=body, headers=headers)
    assert answered.status_code == 200
    assert one.up.requests[-1].body == body
