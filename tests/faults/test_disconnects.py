"""Clients that leave, upstreams that break, readers that are slow, a proxy that shuts down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import Piece, Script, chat_completion, json_answer, sse
from tests.support.connection import Request
from tests.support.inside import (
    AUTHORIZATION,
    Recorded,
    contents,
    nothing_left,
    recorded,
    store_at,
)
from tests.support.running import Running, running, settings_for
from tests.support.upstream import ScriptedUpstream
from tests.support.waiting import standstill
from tests.support.wireclient import WireClient

WORDS = [f"w{number} " for number in range(28)]
TEXT = "".join(WORDS)
TOGETHER = 60
"""Clients at a time."""


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"


EVENTS = [*(event({"content": word}) for word in WORDS), event({}, "stop"), b"data: [DONE]\n\n"]
STREAM = b"".join(EVENTS)
ENDS = list(accumulate(map(len, EVENTS)))
FINISHED = ENDS[-2] - 1
"""From so many bytes on the line with the finish is complete: it ends with its first newline."""
PLAIN = json.dumps(chat_completion(TEXT)).encode()


def question(session: str, *, stream: bool = True) -> dict[str, Any]:
    said = [{"role": "user", "content": session}]
    return {"model": "scripted-1", "stream": stream, "messages": said}


async def asks(proxy: Running, session: str, *, stream: bool = True) -> WireClient:
    """A client that has asked; its own to close."""
    client = await WireClient(proxy.url).__aenter__()
    headers = {"x_session_id": session, "authorization": AUTHORIZATION}
    await client.ask(question(session, stream=stream), **headers)
    return client


def until(count: int, never: asyncio.Event, stream: bytes = STREAM) -> Script:
    """A stream that stops after so many bytes, until the event is set."""
    return sse([stream[:count], never, stream[count:]] if count else [never, stream])


def plain_until(count: int, never: asyncio.Event) -> Script:
    pieces: list[Piece] = [PLAIN[:count], never, PLAIN[count:]] if count else [never, PLAIN]
    return Script(pieces=pieces, framing="length", length=len(PLAIN))


def by_session(request: Request) -> str:
    text: str = request.messages[-1]["content"]
    return text


def bounds(count: int) -> tuple[str, str]:
    """The texts that may have been read from so many bytes: of ended events, of ended lines."""
    ended = sum(end <= count for end in ENDS[: len(WORDS)])
    lines = sum(end - 1 <= count for end in ENDS[: len(WORDS)])
    return "".join(WORDS[:ended]), "".join(WORDS[:lines])


def check_left_after(count: int, found: Recorded) -> None:
    """What must be recorded of a client that left after so many bytes of the stream."""
    if count == 0:
        assert found.said == []
        return
    assert contents(found.said, "user") == [f"s{count}"]
    assert found.said[0][0] == "user" and len(found.exchanges) == 1
    assert found.seqs == list(range(1, len(found.said) + 1))
    text = "".join(contents(found.said, "assistant"))
    if count >= FINISHED:
        assert (text, found.incomplete) == (TEXT, [False])
    else:
        assert text in bounds(count)
        assert found.incomplete == [True]


async def batches(counts: Sequence[int], one: Any) -> None:
    for at in range(0, len(counts), TOGETHER):
        async with asyncio.timeout(20):
            await asyncio.gather(*(one(count) for count in counts[at : at + TOGETHER]))


async def test_a_client_may_leave_at_every_byte_of_a_stream(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = asyncio.Event()
    up.always(lambda request: until(int(by_session(request)[1:]), never))
    counts = range(len(STREAM) + 1)
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:

        async def leaves(count: int) -> None:
            client = await asks(proxy, f"s{count}")
            assert await client.head() == 200
            assert await client.read(count) == STREAM[:count]
            client.leave()

        await batches(counts, leaves)
        for request in up.requests:
            await asyncio.wait_for(request.gone.wait(), 5)
        await up.wait_connections(0)
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        for count in counts:
            check_left_after(count, await recorded(store, f"s{count}"))
    with capsys.disabled():
        print(f"\nclients that left after 0 to {len(STREAM)} bytes: {len(counts)} right records")


async def test_a_client_that_leaves_before_the_head_leaves_nothing(
    up: ScriptedUpstream, tmp_path: Path
) -> None:
    up.always(Script(hang="headers"))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        clients = [await asks(proxy, f"s{n}", stream=bool(n % 2)) for n in range(10)]
        await up.wait_for(10)
        for client in clients:
            client.leave()
        for request in up.requests:
            await asyncio.wait_for(request.gone.wait(), 5)
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        assert [(await recorded(store, f"s{n}")).said for n in range(10)] == [[]] * 10


async def test_a_client_that_leaves_a_plain_answer_has_asked_all_the_same(
    up: ScriptedUpstream, tmp_path: Path
) -> None:
    """Half a JSON text says nothing; of the bytes held back the client has seen none."""
    never = asyncio.Event()
    up.always(lambda request: plain_until(int(by_session(request)[1:]), never))
    counts = [0, 1, 2, 3, 40, len(PLAIN) // 2, len(PLAIN) - 1]
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:

        async def leaves(count: int) -> None:
            client = await asks(proxy, f"s{count}", stream=False)
            assert await client.head() == 200
            seen = max(0, count - 1)
            assert await client.read(seen) == PLAIN[:seen]
            client.leave()

        await batches(counts, leaves)
        for request in up.requests:
            await asyncio.wait_for(request.gone.wait(), 5)
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        found = {count: await recorded(store, f"s{count}") for count in counts}
    for count, record in found.items():
        assert record.said == ([("user", f"s{count}")] if count > 1 else [])
        assert record.incomplete == ([True] if count > 1 else [])


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_with_drain_the_answer_is_finished_for_a_client_that_left(
    up: ScriptedUpstream, tmp_path: Path, stream: bool
) -> None:
    release = asyncio.Event()
    make = until if stream else plain_until
    up.always(lambda request: make(int(by_session(request)[1:]), release))
    counts = [2, 100, ENDS[3], len(PLAIN) - 1]
    assert ENDS[3] < len(PLAIN) < FINISHED
    settings = settings_for(tmp_path, up.url, memory__on_disconnect="drain")
    async with running(settings) as proxy:
        for count in counts:
            client = await asks(proxy, f"s{count}", stream=stream)
            await client.read(count - 1)
            client.leave()
        while len(proxy.server.server_state.connections) > 0:
            await asyncio.sleep(0.001)
        release.set()
        for request in up.requests:
            await asyncio.wait_for(request.answered.wait(), 5)
            assert not request.gone.is_set()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        for count in counts:
            found = await recorded(store, f"s{count}")
            assert found.said == [("user", f"s{count}"), ("assistant", TEXT)]
            assert found.incomplete == [False]


async def test_an_upstream_that_breaks_a_stream_is_passed_on_as_a_break(
    up: ScriptedUpstream, tmp_path: Path
) -> None:
    cuts = sorted({0, *ENDS, *(end - 1 for end in ENDS), *(end + 9 for end in ENDS[:-1])})
    up.always(lambda request: sse(EVENTS, cut=int(by_session(request)[1:])))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:

        async def sees_a_break(count: int) -> None:
            client = await asks(proxy, f"s{count}")
            assert await client.read_all() == STREAM[:count]
            assert not client.whole
            client.leave()

        await batches(cuts, sees_a_break)
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        for count in cuts:
            found = await recorded(store, f"s{count}")
            whole = [("user", f"s{count}"), ("assistant", TEXT)]
            assert found.said == (whole if count >= FINISHED else [])
            assert found.incomplete == ([False] if count >= FINISHED else [])


async def test_an_upstream_that_breaks_a_plain_answer_leaves_nothing(
    up: ScriptedUpstream, tmp_path: Path
) -> None:
    cuts = [0, 1, 50, len(PLAIN) - 1]
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        for count in cuts:
            script = json_answer(chat_completion(TEXT))
            up.reply(Script(pieces=script.pieces, cut=count))
            client = await asks(proxy, f"s{count}", stream=False)
            await client.read_all()
            assert not client.whole
            assert PLAIN.startswith(client.body) and len(client.body) <= count
            client.leave()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        assert [(await recorded(store, f"s{n}")).said for n in cuts] == [[]] * len(cuts)


async def test_a_slow_reader_slows_the_upstream_down(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = event({"content": "x" * 64_000})
    events = [large] * 500
    up.reply(sse([*events, *EVENTS[-2:]]))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        client = await asks(proxy, "slow")
        await client.head()
        request = await up.wait_for()
        sent = await standstill(lambda: request.sent)
        assert sent < len(large) * len(events) / 2
        body = await client.read_all()
        assert client.whole and len(body) == len(large) * len(events) + len(b"".join(EVENTS[-2:]))
        client.leave()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        assert (await recorded(store, "slow")).incomplete == [False]
    with capsys.disabled():
        print(f"\na reader that does not read: {sent / 2**20:.1f} of {len(body) / 2**20:.0f} MiB")


async def test_shutdown_lets_streams_end(up: ScriptedUpstream, tmp_path: Path) -> None:
    release = asyncio.Event()
    up.always(lambda request: until(ENDS[4], release))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        clients = [await asks(proxy, f"s{n}") for n in range(8)]
        for client in clients:
            await client.read(ENDS[4])
        proxy.server.should_exit = True
        release.set()
        for client in clients:
            assert await client.read_all() == STREAM and client.whole
            client.leave()
    async with store_at(settings.store.url) as store:
        for n in range(8):
            found = await recorded(store, f"s{n}")
            assert found.said == [("user", f"s{n}"), ("assistant", TEXT)]
            assert found.incomplete == [False]


async def test_shutdown_records_streams_that_do_not_end_as_incomplete(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    never = asyncio.Event()
    up.always(lambda request: until(ENDS[4], never))
    settings = settings_for(tmp_path, up.url)
    loop = asyncio.get_running_loop()
    async with running(settings) as proxy:
        proxy.server.config.timeout_graceful_shutdown = 1
        clients = [await asks(proxy, f"s{n}") for n in range(30)]
        for client in clients:
            await client.read(ENDS[4])
        began = loop.time()
    took = loop.time() - began
    for client in clients:
        await client.read_all()
        assert not client.whole
        client.leave()
    assert took < 3
    async with store_at(settings.store.url) as store:
        for n in range(30):
            found = await recorded(store, f"s{n}")
            assert found.said == [("user", f"s{n}"), ("assistant", "".join(WORDS[:5]))]
            assert found.incomplete == [True]
    with capsys.disabled():
        print(f"\nshutdown with 30 open streams and a limit of 1 s took {took:.2f} s")
