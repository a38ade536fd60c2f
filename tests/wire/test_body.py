"""Reading request bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from proxy.errors import ProxyError, overloaded
from proxy.wire import body as bodies
from proxy.wire.body import PIECE, ClientGone, Message, Receive, in_pieces, stream
from proxy.wire.limits import SMALL
from tests.support.turns import Neighbour

GONE: Message = {"type": "http.disconnect"}


def piece(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class Client:
    """Receives what was given, then waits for ever; counts how often it was asked."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.asked = 0

    async def receive(self) -> Message:
        self.asked += 1
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop(0)


class Held:
    """Room without end; remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def hold(self, size: int) -> None:
        self.asked.append(size)


async def read(
    receive: Receive,
    limit: int,
    timeout: float,
    declared: int | None = None,
    held: Held | None = None,
) -> bytes:
    return await bodies.read(receive, limit, timeout, declared, (held or Held()).hold)


async def test_a_body_in_one_message_is_that_very_object() -> None:
    body = b"x" * 100
    client = Client(piece(body, more=False))
    assert await read(client.receive, 100, 1.0, 100) is body
    assert client.asked == 1


async def test_pieces_are_joined_in_order() -> None:
    client = Client(piece(b"a"), piece(b""), piece(b"bc"), piece(b"d", more=False))
    assert await read(client.receive, 4, 1.0) == b"abcd"


async def test_long_ones_too() -> None:
    parts = [bytes([n]) * (4 * PIECE) for n in range(5)]
    client = Client(*map(piece, parts[:-1]), piece(parts[-1], more=False))
    assert await read(client.receive, 32 * PIECE, 10.0) == b"".join(parts)


async def test_a_long_body_is_cut_and_others_have_their_turn_in_between() -> None:
    body = bytes(range(256)) * (3 * PIECE // 256) + b"end"
    async with Neighbour() as neighbour:
        cut = [piece async for piece in in_pieces(body)]
    assert b"".join(cut) == body and [len(piece) for piece in cut] == [PIECE] * 3 + [3]
    assert neighbour.turns >= len(cut)


async def test_a_message_may_leave_out_its_fields() -> None:
    client = Client({"type": "http.request"})
    assert await read(client.receive, 4, 1.0) == b""


async def test_a_declared_length_too_large_is_refused_unread() -> None:
    client = Client(piece(b"x" * 11, more=False))
    with pytest.raises(ProxyError) as caught:
        await read(client.receive, 10, 1.0, declared=11)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")
    assert client.asked == 0


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([piece(b"x" * 11, more=False)], id="at-once"),
        pytest.param([piece(b"x" * 6), piece(b"x" * 5), piece(b"", more=False)], id="by-and-by"),
    ],
)
async def test_more_than_allowed_is_refused_by_count(messages: list[Message]) -> None:
    with pytest.raises(ProxyError) as caught:
        await read(Client(*messages).receive, 10, 1.0, declared=3)
    assert caught.value.status == 413


@pytest.mark.parametrize(
    "messages", [pytest.param([], id="nothing"), pytest.param([piece(b"x")], id="a-part")]
)
async def test_a_body_that_never_ends_times_out(messages: list[Message]) -> None:
    with pytest.raises(ProxyError) as caught:
        await read(Client(*messages).receive, 10, 0.01)
    assert (caught.value.status, caught.value.code) == (408, "request_timeout")


@pytest.mark.parametrize(
    "messages", [pytest.param([GONE], id="at-once"), pytest.param([piece(b"x"), GONE], id="later")]
)
async def test_a_client_that_leaves_is_no_error_answer(messages: list[Message]) -> None:
    with pytest.raises(ClientGone):
        await read(Client(*messages).receive, 10, 1.0)


async def test_what_comes_in_one_message_needs_no_room() -> None:
    held = Held()
    await read(Client(piece(b"x", more=False)).receive, 10, 1.0, 1, held)
    assert held.asked == []


async def test_a_body_has_room_for_what_it_declares_before_it_is_received() -> None:
    held = Held()
    client = Client(piece(b"x"), piece(b"y", more=False))
    assert await read(client.receive, 10, 1.0, 2, held) == b"xy"
    assert held.asked == [2, 2]


async def test_one_that_declares_nothing_has_room_for_little_and_then_for_all_it_may_have() -> None:
    held, part = Held(), bytes(SMALL)
    client = Client(piece(part), piece(part), piece(b"", more=False))
    assert await read(client.receive, 10 * SMALL, 1.0, None, held) == part + part
    assert held.asked == [SMALL, 10 * SMALL, 2 * SMALL]


async def test_what_has_no_room_is_received_no_further() -> None:
    async def full(size: int) -> None:
        raise overloaded()

    client = Client(piece(b"x"), piece(b"y", more=False))
    with pytest.raises(ProxyError) as caught:
        await bodies.read(client.receive, 10, 1.0, 2, full)
    assert (caught.value.code, client.asked) == ("overloaded", 1)


async def test_a_cancelled_read_stays_cancelled() -> None:
    task = asyncio.create_task(read(Client().receive, 10, 1.0))
    await asyncio.wait({task}, timeout=0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def collect(pieces: AsyncIterator[bytes]) -> list[bytes]:
    return [part async for part in pieces]


async def test_a_stream_keeps_pieces_as_they_came() -> None:
    client = Client(piece(b"a"), piece(b""), piece(b"bc"), piece(b"", more=False))
    assert await collect(stream(client.receive)) == [b"a", b"bc"]


async def test_a_stream_begins_with_what_was_received_before() -> None:
    client = Client(piece(b"b", more=False))
    assert await collect(stream(client.receive, piece(b"a"))) == [b"a", b"b"]


async def test_a_whole_first_message_needs_no_other() -> None:
    client = Client()
    assert await collect(stream(client.receive, piece(b"a", more=False))) == [b"a"]
    assert client.asked == 0


async def test_a_stream_asks_for_the_next_piece_only_when_one_was_taken() -> None:
    client = Client(piece(b"a"), piece(b"b"), piece(b"c", more=False))
    pieces = stream(client.receive)
    assert await anext(pieces) == b"a"
    assert client.asked == 1
    assert await anext(pieces) == b"b"
    assert client.asked == 2


async def test_a_client_that_leaves_breaks_the_stream() -> None:
    pieces = stream(Client(piece(b"a"), GONE).receive)
    assert await anext(pieces) == b"a"
    with pytest.raises(ClientGone):
        await anext(pieces)
