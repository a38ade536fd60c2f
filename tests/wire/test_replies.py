"""Replies that were looked into are passed on as if nobody had."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import AsyncIterator, Sequence

import pytest

from proxy.errors import RawHeaders
from proxy.wire.coding.decoding import coding_of
from proxy.wire.coding.unpacker import MAX_EMPTY, PIECE
from proxy.wire.failures import UpstreamBroken
from proxy.wire.replies import (
    MAX_SNIFFED,
    DecodedReply,
    PeekedReply,
    is_event_stream,
    is_stream,
)
from tests.support.turns import Neighbour


class Pieces:
    """A reply whose body comes in these pieces, and may then break."""

    status = 200

    def __init__(
        self,
        pieces: Sequence[bytes],
        headers: RawHeaders | None = None,
        failure: Exception | None = None,
    ) -> None:
        self._pieces, self._failure = pieces, failure
        self.headers = headers or []
        self.given = 0
        self.closed = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.given += 1
            yield piece
        if self._failure is not None:
            raise self._failure

    async def read(self, limit: int = 0) -> bytes:
        raise AssertionError("what is passed on is not read whole")

    async def close(self) -> None:
        self.closed += 1


async def body(reply: PeekedReply | DecodedReply) -> bytes:
    return b"".join([piece async for piece in reply.chunks()])


# Peeked


async def test_a_peek_at_a_short_body_sees_all_and_takes_nothing_away() -> None:
    inner = Pieces([b"ab", b"cd"], [(b"X-A", b"1")])
    reply = PeekedReply(inner)
    assert await reply.peek(100) == b"abcd"
    assert (reply.status, reply.headers, await body(reply)) == (200, inner.headers, b"abcd")
    await reply.close()
    assert inner.closed == 1


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
async def test_a_peek_at_a_long_body_reads_no_more_than_it_needs(limit: int) -> None:
    inner = Pieces([b"ab", b"cd", b"ef", b"gh"])
    reply = PeekedReply(inner)
    assert len(await reply.peek(limit)) >= limit
    assert inner.given <= limit // 2 + 1
    assert await body(reply) == b"abcdefgh"


async def test_a_break_behind_a_peek_is_still_a_break() -> None:
    reply = PeekedReply(Pieces([b"ab", b"cd"], failure=UpstreamBroken("cut")))
    assert await reply.peek(2) == b"ab"
    with pytest.raises(UpstreamBroken):
        await body(reply)


async def test_a_break_during_a_peek_comes_behind_what_arrived() -> None:
    reply = PeekedReply(Pieces([b"ab"], failure=UpstreamBroken("cut")))
    assert await reply.peek(100) == b"ab"
    got = b""
    with pytest.raises(UpstreamBroken):
        async for piece in reply.chunks():
            got += piece
    assert got == b"ab"


# Decoded


TEXT = b"data: hello\n\n" * 200


def packed(coding: str) -> bytes:
    return zlib.compress(TEXT) if coding == "deflate" else gzip.compress(TEXT)


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_body_is_decompressed_as_it_comes(coding: str, size: int) -> None:
    whole = packed(coding)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert await body(DecodedReply(Pieces(pieces))) == TEXT


async def test_what_is_said_of_the_packed_bytes_is_not_said_of_the_body() -> None:
    of_bytes = [b"Content-Encoding", b"Content-Length", b"ETag", b"Content-MD5", b"Repr-Digest"]
    kept = [(b"Content-Type", b"text/plain")]
    reply = DecodedReply(Pieces([], [*((name, b"x") for name in of_bytes), *kept]))
    assert reply.headers == kept


async def test_members_one_after_another_are_one_body() -> None:
    """RFC 1952 2.2: a gzip file is a series of members."""
    whole = gzip.compress(b"ab") + gzip.compress(b"cd") + gzip.compress(b"")
    for size in (1, 5, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert await body(DecodedReply(Pieces(pieces))) == b"abcd"


async def test_zeros_behind_a_body_are_nothing() -> None:
    assert await body(DecodedReply(Pieces([gzip.compress(b"ab") + bytes(9), bytes(3)]))) == b"ab"


async def test_a_compressed_body_that_ends_too_early_is_a_break() -> None:
    got = b""
    with pytest.raises(UpstreamBroken):
        async for piece in DecodedReply(Pieces([gzip.compress(TEXT)[:-9]])).chunks():
            got += piece
    assert TEXT.startswith(got)


async def test_what_is_not_compressed_as_it_says_is_a_break() -> None:
    with pytest.raises(UpstreamBroken):
        await body(DecodedReply(Pieces([b"data: hello\n\n"])))


async def test_an_empty_body_is_empty_in_any_coding() -> None:
    assert await body(DecodedReply(Pieces([]))) == b""


async def test_a_body_without_compression_raw_is_taken_as_deflate_too() -> None:
    """Some servers say deflate and mean no zlib around it; browsers take both."""
    packer = zlib.compressobj(wbits=-15)
    whole = packer.compress(TEXT) + packer.flush()
    headers = [(b"content-encoding", b"deflate")]
    for size in (1, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert await body(DecodedReply(Pieces(pieces, headers))) == TEXT


def test_headers_about_the_packed_bytes_are_gone_and_no_others() -> None:
    kept = [(b"Content-Type", b"text/event-stream"), (b"X-A", b"1"), (b"X-A", b"2")]
    inner = Pieces([], [(b"Content-Encoding", b"gzip"), *kept, (b"content-length", b"9")])
    assert DecodedReply(inner).headers == kept


# What it is

JSON, EVENTS = (b"content-type", b"application/json"), (b"content-type", b"text/event-stream")
MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("header", [None, JSON])
@pytest.mark.parametrize(
    ("pieces", "stream", "needed"),
    [
        ([b"data: {}\n", b"more"], True, 1),
        ([b"d", b"a", b"ta", b":", b"more"], True, 4),
        ([b"event: x", b"more"], True, 1),
        ([b": alive\n", b"more"], True, 1),
        ([b"\n\n", b" ", b"retry: 3", b"more"], True, 3),
        ([MARK[:1], MARK[1:], b"id: 1\n", b"more"], True, 3),
        ([b'{"data": 1}', b"more"], False, 1),
        ([MARK + b"\n{", b"more"], False, 1),
        ([b"date", b"more"], False, 1),
        ([b"da"], False, 1),
        ([], False, 0),
        ([b" " * MAX_SNIFFED, b"data:"], False, 1),
    ],
)
async def test_a_stream_that_says_nothing_of_it_is_told_by_its_first_bytes(
    header: tuple[bytes, bytes] | None, pieces: list[bytes], stream: bool, needed: int
) -> None:
    inner = Pieces(pieces, [header] if header else [])
    reply = PeekedReply(inner)
    assert await is_stream(reply) is stream
    assert inner.given == needed
    assert await body(reply) == b"".join(pieces)


@pytest.mark.parametrize(
    ("pieces", "stream"),
    [
        ([b"\n", b"{}"], True),
        ([b"x"], True),
        ([], True),
        ([MARK + b"{", b"}"], False),
        ([b" ["], False),
    ],
)
async def test_json_that_says_it_were_a_stream_is_told_by_its_first_piece(
    pieces: list[bytes], stream: bool
) -> None:
    inner = Pieces(pieces, [EVENTS])
    assert await is_stream(PeekedReply(inner)) is stream
    assert inner.given <= 1


# What headers say


@pytest.mark.parametrize(
    ("value", "stream"),
    [
        (b"text/event-stream", True),
        (b"Text/Event-Stream; charset=utf-8", True),
        (b" text/event-stream ;x=y", True),
        (b"text/event-streams", False),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_a_stream_is_told_by_its_media_type(value: bytes, stream: bool) -> None:
    assert is_event_stream([(b"Content-Type", value)]) is stream


@pytest.mark.parametrize(
    ("headers", "coding"),
    [
        ([], b"identity"),
        ([(b"Content-Encoding", b" GZip ")], b"gzip"),
        ([(b"content-encoding", b"gzip, br")], b"gzip, br"),
        ([(b"content-encoding", b"gzip"), (b"Content-Encoding", b"br")], b"gzip, br"),
        ([(b"content-encoding", b"")], b"identity"),
        ([(b"content-encoding", b"None")], b"identity"),
        ([(b"content-encoding", b"UTF-8")], b"identity"),
        ([(b"content-encoding", b"identity, gzip")], b"gzip"),
    ],
)
def test_the_coding_of_a_body_is_identity_unless_it_says_so(
    headers: RawHeaders, coding: bytes
) -> None:
    assert coding_of(headers) == coding


# Decoded, where the encoding is an attack

ZEROS = 64 * 1024 * 1024


def endless(*blocks: bytes) -> Sequence[bytes]:
    return [blocks[0], *([blocks[1]] * 2000)]


async def test_a_bomb_goes_off_piece_by_piece_and_others_have_their_turn() -> None:
    packed = gzip.compress(bytes(ZEROS))
    reply, size = DecodedReply(Pieces([packed])), 0
    async with Neighbour() as neighbour:
        async for piece in reply.chunks():
            assert len(piece) <= PIECE
            size += len(piece)
    assert size == ZEROS
    assert neighbour.turns >= ZEROS // PIECE


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(endless(b"\x1f\x8b\x08\x08\0\0\0\0\0\3", b"a" * 10_000), id="a-name"),
        pytest.param(
            endless(b"\x1f\x8b\x08\0\0\0\0\0\0\3", b"\0\0\0\xff\xff" * 2_000), id="blocks"
        ),
        pytest.param(endless(b"", gzip.compress(b"") * 500), id="members"),
    ],
)
async def test_an_encoding_that_holds_nothing_is_a_break_before_long(
    pieces: Sequence[bytes],
) -> None:
    inner = Pieces(pieces)
    with pytest.raises(UpstreamBroken):
        await body(DecodedReply(inner))
    assert sum(map(len, pieces[: inner.given])) < 2 * MAX_EMPTY


@pytest.mark.parametrize("wbits", [31, 15, -15], ids=["gzip", "zlib", "bare"])
@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7])
async def test_a_text_of_any_size_comes_out_whole(wbits: int, size: int) -> None:
    for text in (bytes(size), random.Random(size).randbytes(size)):
        packer = zlib.compressobj(wbits=wbits)
        packed = packer.compress(text) + packer.flush()
        for step in (len(packed), 1 if size < 2 else 4099):
            pieces = [packed[at : at + step] for at in range(0, len(packed), step)]
            assert await body(DecodedReply(Pieces(pieces))) == text


async def test_padding_behind_the_last_member_is_ignored_whatever_it_is() -> None:
    padded = [gzip.compress(b"ab"), bytes(100_000), b"\x1f\x8b no member"]
    assert await body(DecodedReply(Pieces(padded))) == b"ab"
