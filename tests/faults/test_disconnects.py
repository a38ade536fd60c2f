"""Clients that leave, and readers that are slow."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.processes.redis import Server
from tests.support.processes.running import Running, running, settings_for
from tests.support.store.inside import (
    AUTHORIZATION,
    Recorded,
    contents,
    nothing_left,
    recorded,
    store_at,
)
from tests.support.upstream.answers import Script, sse
from tests.support.upstream.connection import Request
from tests.support.upstream.cutstream import (
    ENDS,
    EVENTS,
    FINISHED,
    PLAIN,
    STREAM,
    TEXT,
    WORDS,
    asks,
    batches,
    bounds,
    by_session,
    plain_until,
    until,
)
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.wireclient import WireClient
from tests.support.waiting import PATIENCE, standstill


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
            await asyncio.wait_for(request.gone.wait(), PATIENCE)
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
            await asyncio.wait_for(request.gone.wait(), PATIENCE)
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        assert [(await recorded(store, f"s{n}")).said for n in range(10)] == [[]] * 10


async def test_a_client_that_leaves_while_memory_is_loaded_ends_its_request(
    up: ScriptedUpstream, server: Server, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, up.url, store__url=server.url, store__timeout=2 * PATIENCE)
    async with running(settings) as proxy:
        with server.paused():
            client = await asks(proxy, "s")
            while not proxy.server.server_state.tasks:
                await asyncio.sleep(0.001)
            client.leave()
            await nothing_left(proxy)
    assert up.requests == []


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
            await asyncio.wait_for(request.gone.wait(), PATIENCE)
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
            await asyncio.wait_for(request.answered.wait(), PATIENCE)
            assert not request.gone.is_set()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        for count in counts:
            found = await recorded(store, f"s{count}")
            assert found.said == [("user", f"s{count}"), ("assistant", TEXT)]
            assert found.incomplete == [False]


@pytest.mark.parametrize("then", ["cancel", "drain"])
async def test_a_client_that_breaks_off_and_asks_again_at_once_finds_it_recorded(
    up: ScriptedUpstream, tmp_path: Path, then: str
) -> None:
    never, sessions = asyncio.Event(), [f"s{number}" for number in range(20)]

    def answer(request: Request) -> Script:
        return sse([STREAM]) if len(request.messages) > 1 else until(ENDS[2], never)

    up.always(answer)
    settings = settings_for(tmp_path, up.url, memory__on_disconnect=then)
    async with running(settings) as proxy:
        for session in sessions:
            client = await asks(proxy, session)
            assert await client.read(ENDS[2]) == STREAM[: ENDS[2]]
            client.leave()
            again = await resends(proxy, session)
            assert await again.read(len(STREAM)) == STREAM
            again.leave()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        found = [await recorded(store, session) for session in sessions]
    assert [contents(each.said, "user") for each in found] == [[s, "again"] for s in sessions]
    assert {tuple(each.incomplete) for each in found} == {(True, False)}


async def resends(proxy: Running, session: str) -> WireClient:
    """A client that sends its question again, what it has seen of the answer, and a question."""
    client = await WireClient(proxy.url).__aenter__()
    seen = {"role": "assistant", "content": "".join(WORDS[:3])}
    before, after = ({"role": "user", "content": text} for text in (session, "again"))
    said = [before, seen, after]
    headers = {"x_session_id": session, "authorization": AUTHORIZATION}
    await client.ask({"model": "scripted-1", "stream": True, "messages": said}, **headers)
    return client


async def test_a_slow_reader_slows_the_upstream_down(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comment = b": " + b"x" * 64_000 + b"\n\n"
    large = [comment] * 500
    up.reply(sse([*large, *EVENTS]))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        client = await asks(proxy, "slow")
        await client.head()
        request = await up.wait_for()
        sent = await standstill(lambda: request.sent)
        assert sent < len(comment) * len(large) / 2
        body = await client.read_all()
        assert client.whole and body == comment * len(large) + STREAM
        client.leave()
        await nothing_left(proxy)
    async with store_at(settings.store.url) as store:
        found = await recorded(store, "slow")
        assert (found.said, found.incomplete) == ([("user", "slow"), ("assistant", TEXT)], [False])
    with capsys.disabled():
        print(f"\na reader that does not read: {sent / 2**20:.1f} of {len(body) / 2**20:.0f} MiB")
