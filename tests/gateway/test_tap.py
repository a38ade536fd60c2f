"""A reply passes unchanged, cut in any way, and its end waits until it is recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from proxy.chat.reply.answer import Reply as ChatReply
from proxy.chat.reply.reply import read_reply
from proxy.errors import RawHeaders
from proxy.formats.chat_completions import ChatCompletions
from proxy.gateway.recording.tap import MAX_EVENTS, BodyTap, StreamTap
from proxy.wire.body import PIECE, Message
from proxy.wire.relay import Delivery
from tests.support.upstream.answers import USAGE
from tests.support.upstream.spoken import NEWLINES, SPOKEN, Spoken, cuts
from tests.support.upstream.streams import line_end, reference_marks

FORMAT = ChatCompletions()


class Pieces:
    """A reply whose body comes in these pieces."""

    status = 200
    headers: RawHeaders = []

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def read(self, limit: int = 0) -> bytes:
        return b"".join(self._pieces)

    async def close(self) -> None:
        pass


class Book:
    """A recorder that notes what it is told, and what the client had by then."""

    def __init__(self) -> None:
        self.commits: list[ChatReply | None] = []
        self.amendments: list[ChatReply] = []
        self.incomplete: list[bool] = []
        self.had: list[bytes] = []
        self.got = b""
        self.over = False

    async def commit(self, reply: ChatReply | None, *, incomplete: bool) -> None:
        assert not self.over
        self.commits.append(reply)
        self.incomplete.append(incomplete)
        self.had.append(self.got)

    async def amend(self, reply: ChatReply) -> None:
        assert not self.over
        self.amendments.append(reply)
        self.had.append(self.got)

    async def send(self, message: Message) -> None:
        assert not self.over
        self.got += message["body"]
        self.over = not message.get("more_body", False)


def expected(spoken: Spoken) -> list[tuple[bytes, bytes | None, bool]]:
    plain = read_reply(json.dumps(spoken.plain()).encode())
    assert plain is not None
    return [(x.body, x.wire, x.complete and x.finish_reason is not None) for x in plain.choices]


def stream_tap(book: Book) -> StreamTap:
    return StreamTap(book, FORMAT.read_stream())


def body_tap(book: Book, length: int | None) -> BodyTap:
    return BodyTap(book, FORMAT.read_reply, length)


@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES)
@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
async def test_a_stream_is_passed_on_whole_and_recorded_as_the_plain_answer_would_be(
    spoken: Spoken, feeding: str, newline: bytes
) -> None:
    stream, book = spoken.with_newline(newline), Book()
    await stream_tap(book).relay(Pieces(cuts(stream, feeding, newline)), Delivery(book.send))
    assert (book.got, book.over) == (stream, True)
    assert book.incomplete == [spoken.incomplete]
    (last,) = book.amendments
    assert without_extras(spoken, last) == expected(spoken)
    assert (last.usage is not None) == spoken.usage
    if last.usage is not None:
        assert json.loads(last.usage) == USAGE


def without_extras(spoken: Spoken, reply: ChatReply) -> list[tuple[bytes, bytes | None, bool]]:
    """What is recorded; of an unfinished call the wire keeps more than a plain answer could."""
    partial = spoken is SPOKEN["a-call-that-was-not-finished"]
    return [(x.body, None if partial else x.wire, x.complete) for x in reply.choices]


@pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES)
@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
@pytest.mark.parametrize("spoken", SPOKEN.values(), ids=SPOKEN)
async def test_until_the_commit_the_client_has_all_before_the_finish_and_never_the_finish(
    spoken: Spoken, feeding: str, newline: bytes
) -> None:
    stream, book = spoken.with_newline(newline), Book()
    await stream_tap(book).relay(Pieces(cuts(stream, feeding, newline)), Delivery(book.send))
    had = book.had[0]
    marks = reference_marks(stream)
    begin = marks[0][0] if marks else len(stream)
    assert stream.startswith(had)
    # Of the finish line the client may have a part, where the upstream's piece ended in it.
    assert begin <= len(had) <= line_end(stream, begin)
    if feeding in ("whole", "events") and stream.endswith(newline):
        assert len(had) == begin


@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
async def test_usage_and_further_choices_are_recorded_before_the_stream_ends(feeding: str) -> None:
    spoken, book = SPOKEN["three-choices-first-finishes-first"], Book()
    pieces = cuts(spoken.stream, feeding, b"\n")
    await stream_tap(book).relay(Pieces(pieces), Delivery(book.send))
    assert (len(book.commits), len(book.amendments)) == (1, 1)
    assert not any(had.endswith(b"[DONE]\n\n") for had in book.had)
    first, last = book.commits[0], book.amendments[0]
    assert first is not None
    assert (first == last) == (feeding == "whole")


async def test_what_has_come_of_an_abandoned_stream_is_recorded_as_incomplete() -> None:
    book = Book()
    tap = stream_tap(book)
    stream = SPOKEN["text"].stream
    half = stream[: stream.index(b'"lo"')]
    await tap._relay_chunk(half, Delivery(book.send).send_piece)
    await tap.abandon()
    await tap.abandon()
    assert book.incomplete == [True]
    (reply,) = book.amendments
    assert book.commits == [reply]
    assert json.loads(reply.choices[0].body)["content"] == "Hel"


async def test_a_stream_abandoned_behind_its_finish_stays_complete() -> None:
    book = Book()
    tap = stream_tap(book)
    stream = SPOKEN["usage-behind-the-finish"].stream
    await tap._relay_chunk(stream[: stream.index(b'"usage"')], Delivery(book.send).send_piece)
    await tap.abandon()
    assert book.incomplete == [False]


@pytest.mark.parametrize("feeding", ["whole", "events", "bytes", "random"])
@pytest.mark.parametrize("end", [b'data: {"error": {"message": "boom"}}\n\n', b"data: [DONE]\n\n"])
async def test_nothing_is_recorded_that_comes_behind_the_end(end: bytes, feeding: str) -> None:
    book = Book()
    stream = SPOKEN["text"].stream
    at = stream.rindex(b"data: ", 0, stream.index(b'"lo"'))
    ended = stream[:at] + end + stream[at:]
    await stream_tap(book).relay(Pieces(cuts(ended, feeding, b"\n")), Delivery(book.send))
    assert (book.got, book.incomplete) == (ended, [True])
    (reply,) = book.commits
    assert reply is not None
    assert json.loads(reply.choices[0].body)["content"] == "Hel"
    assert not reply.choices[0].complete


PLAIN = json.dumps(SPOKEN["usage-behind-the-finish"].plain()).encode()


@pytest.mark.parametrize("declared", [True, False], ids=["length", "no-length"])
@pytest.mark.parametrize("feeding", ["whole", "bytes", "random"])
async def test_of_a_plain_answer_the_last_byte_waits(feeding: str, declared: bool) -> None:
    book = Book()
    tap = body_tap(book, len(PLAIN) if declared else None)
    await tap.relay(Pieces(cuts(PLAIN, feeding, b"\n")), Delivery(book.send))
    assert (book.got, book.over) == (PLAIN, True)
    assert PLAIN.startswith(book.had[0])
    assert len(book.had[0]) < len(PLAIN)
    assert book.incomplete == [False]
    assert (book.commits, book.amendments) == ([read_reply(PLAIN)], [])


async def test_further_choices_of_a_plain_answer_are_written_behind_the_first() -> None:
    said = [{"index": n, "message": {"content": f"a{n}"}} for n in range(2)]
    body, book = json.dumps({"choices": said}).encode(), Book()
    await body_tap(book, len(body)).relay(Pieces([body]), Delivery(book.send))
    assert book.commits == book.amendments == [read_reply(body)]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"choices":[]}', b'{"error":{"message":"x"}}', b"\xff" * 9],
)
async def test_a_plain_answer_without_choices_is_passed_on_and_incomplete(body: bytes) -> None:
    book = Book()
    await body_tap(book, None).relay(Pieces([body] if body else []), Delivery(book.send))
    assert (book.got, book.over, book.incomplete) == (body, True, [True])


async def test_of_an_abandoned_plain_answer_only_the_question_is_recorded() -> None:
    book = Book()
    tap = body_tap(book, None)
    await tap.abandon()
    await tap.abandon()
    assert (book.commits, book.incomplete) == ([None], [True])


class SlowBook(Book):
    """It takes its time, and can be cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    async def commit(self, reply: ChatReply | None, *, incomplete: bool) -> None:
        self.begun.set()
        await self.free.wait()
        await super().commit(reply, incomplete=incomplete)


@pytest.mark.parametrize("kind", ["stream", "plain"])
async def test_a_client_that_leaves_while_its_turn_is_written_down_does_not_undo_it(
    kind: str,
) -> None:
    spoken, book = SPOKEN["text"], SlowBook()
    plain = json.dumps(spoken.plain()).encode()
    body = spoken.with_newline(b"\n") if kind == "stream" else plain
    tap = stream_tap(book) if kind == "stream" else body_tap(book, len(body))
    relaying = asyncio.create_task(tap.relay(Pieces([body]), Delivery(book.send)))
    await book.begun.wait()
    relaying.cancel()
    await asyncio.sleep(0.01)
    assert not relaying.done()
    book.free.set()
    with pytest.raises(asyncio.CancelledError):
        await relaying
    await tap.abandon()
    (recorded,) = book.commits
    assert recorded is not None and book.incomplete == [False]


async def test_others_have_their_turn_while_a_flood_of_events_is_read() -> None:
    event, book, turns = (
        b'data: {"choices": [{"index": 0, "delta": {"content": "w"}}]}\n\n',
        Book(),
        0,
    )
    flood = event * (8 * PIECE // len(event))

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(others())
    await stream_tap(book).relay(Pieces([flood]), Delivery(book.send))
    counting.cancel()
    assert book.got == flood and turns >= len(flood) // MAX_EVENTS - 1
