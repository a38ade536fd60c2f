"""Passing a reply on: every piece at once, an end only where there was one, nobody forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from proxy.errors import RawHeaders
from proxy.wire import relay as relaying
from proxy.wire.body import ClientGone, Message
from proxy.wire.failures import UpstreamBroken
from proxy.wire.relay import Delivery, DisconnectGuard, relay


class Pieces:
    """A reply whose body comes in these pieces, and may then break."""

    status = 200
    headers: RawHeaders = []

    def __init__(self, pieces: Sequence[bytes], failure: Exception | None = None) -> None:
        self._pieces, self._failure = pieces, failure
        self.given = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.given += 1
            yield piece
        if self._failure is not None:
            raise self._failure

    async def read(self, limit: int = 0) -> bytes:
        return b"".join(self._pieces)

    async def close(self) -> None:
        pass


class Client:
    """What a client was sent; it may take its time, and may leave."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.ready = asyncio.Event()
        self.ready.set()
        self.left = asyncio.Event()
        self.watched = asyncio.Event()

    async def send(self, message: Message) -> None:
        await self.ready.wait()
        self.messages.append(message)

    async def receive(self) -> Message:
        self.watched.set()
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.messages if "body" in message]

    @property
    def ended(self) -> bool:
        return not self.messages[-1].get("more_body", False)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaying, "WATCH_AFTER", 0.0)


# Bodies


@pytest.mark.parametrize(
    ("pieces", "length", "sent"),
    [
        pytest.param([], None, [b""], id="empty"),
        pytest.param([], 0, [b""], id="empty-and-declared"),
        pytest.param([b"ab", b"c"], None, [b"ab", b"c", b""], id="of-unknown-length"),
        pytest.param([b"ab", b"c"], 3, [b"ab", b"c"], id="of-known-length"),
        pytest.param([b"abc"], 3, [b"abc"], id="in-one"),
        pytest.param([b"", b"ab", b""], None, [b"ab", b""], id="empty-pieces-say-nothing"),
        pytest.param([b"ab"], 5, [b"ab", b""], id="shorter-than-declared"),
    ],
)
async def test_every_piece_is_sent_as_it_came_and_the_end_once(
    pieces: list[bytes], length: int | None, sent: list[bytes]
) -> None:
    client = Client()
    delivery = Delivery(client.send)
    await relay(Pieces(pieces), delivery, length)
    assert client.bodies == sent
    assert client.ended
    assert delivery.complete
    assert delivery.bytes == sum(map(len, pieces))


async def test_a_reply_that_breaks_off_gets_no_end() -> None:
    client = Client()
    delivery = Delivery(client.send)
    with pytest.raises(UpstreamBroken):
        await relay(Pieces([b"ab"], UpstreamBroken("cut")), delivery, None)
    assert client.bodies == [b"ab"]
    assert not client.ended
    assert not delivery.complete


async def test_the_next_piece_is_asked_for_when_the_last_one_was_taken() -> None:
    client, reply = Client(), Pieces([b"a"] * 10)
    client.ready.clear()
    relaying_task = asyncio.create_task(relay(reply, Delivery(client.send), None))
    for _ in range(10):
        await asyncio.sleep(0)
    assert reply.given == 1
    client.ready.set()
    await relaying_task
    assert reply.given == 10


async def test_status_and_headers_go_first_and_are_noted() -> None:
    client = Client()
    delivery = Delivery(client.send)
    headers = [(b"X-A", b"1"), (b"x-a", b"2")]
    await delivery.start(429, headers)
    assert client.messages == [{"type": "http.response.start", "status": 429, "headers": headers}]
    assert (delivery.status, delivery.bytes, delivery.complete) == (429, 0, False)


# Presence


async def test_a_client_that_leaves_cancels_the_block() -> None:
    client, cleaned = Client(), asyncio.Event()

    async def block() -> None:
        with DisconnectGuard(client.receive):
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.set()

    task = asyncio.create_task(block())
    await client.watched.wait()
    client.left.set()
    with pytest.raises(ClientGone):
        await task
    assert cleaned.is_set()
    assert not task.cancelled()


async def test_what_the_block_raises_is_raised() -> None:
    client = Client()
    with pytest.raises(UpstreamBroken), DisconnectGuard(client.receive):
        raise UpstreamBroken("cut")


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    client = Client()

    async def block() -> None:
        with DisconnectGuard(client.receive):
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await client.watched.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_both_at_once_are_a_cancellation() -> None:
    client = Client()

    async def block() -> None:
        with DisconnectGuard(client.receive):
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await client.watched.wait()
    client.left.set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_patient_block_goes_on_speaking_to_nobody() -> None:
    client, finished = Client(), False
    with DisconnectGuard(client.receive) as presence:
        presence.outlives_client = True
        await client.watched.wait()
        client.left.set()
        for _ in range(10):
            await asyncio.sleep(0)
        finished = True
    assert finished


async def test_a_client_that_uploads_is_watched_behind_the_last_piece() -> None:
    client = Client()

    async def body() -> AsyncIterator[bytes]:
        for piece in (b"a", b"b"):
            await asyncio.sleep(0)
            assert not client.watched.is_set()
            yield piece

    with DisconnectGuard(client.receive, uploading=True) as presence:
        assert [piece async for piece in presence.watch_after(body())] == [b"a", b"b"]
        await client.watched.wait()


async def test_leaving_behind_the_last_piece_means_nothing() -> None:
    client = Client()
    with DisconnectGuard(client.receive) as presence:
        await client.watched.wait()
        delivery = Delivery(client.send)
        delivery.guard = presence
        await delivery.end(b"x")
        client.left.set()
        for _ in range(10):
            await asyncio.sleep(0)
    assert client.ended


async def test_nobody_watches_behind_the_block() -> None:
    client = Client()
    before = asyncio.all_tasks()
    with DisconnectGuard(client.receive):
        await client.watched.wait()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_block_that_is_over_at_once_watches_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relaying, "WATCH_AFTER", 60.0)
    client = Client()
    with DisconnectGuard(client.receive):
        pass
    assert not client.watched.is_set()


async def test_more_of_a_request_is_no_leaving() -> None:
    client = Client()
    more = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        return more.pop() if more else await client.receive()

    with DisconnectGuard(receive):
        await client.watched.wait()
    assert more == []
