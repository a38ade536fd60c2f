"""Upstreams that break, and a proxy that shuts down while answers are on their way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.processes.running import running, settings_for
from tests.support.store.inside import contents, nothing_left, recorded, store_at
from tests.support.upstream.answers import Script, chat_completion, json_answer, sse
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
    by_session,
    until,
)
from tests.support.upstream.scripted import ScriptedUpstream


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
    assert took < 5
    async with store_at(settings.store.url) as store:
        for n in range(30):
            found = await recorded(store, f"s{n}")
            assert found.said == [("user", f"s{n}"), ("assistant", "".join(WORDS[:5]))]
            assert found.incomplete == [True]
    with capsys.disabled():
        print(f"\nshutdown with 30 open streams and a limit of 1 s took {took:.2f} s")


async def test_shutdown_waits_for_what_takes_long_to_write_down(
    up: ScriptedUpstream, tmp_path: Path
) -> None:
    """The tokens of a long message are counted on a thread, and the record waits for that."""
    long = "all the words of a very long document " * 100_000
    up.always(lambda request: until(ENDS[4], asyncio.Event()))
    settings = settings_for(tmp_path, up.url)
    async with running(settings) as proxy:
        proxy.server.config.timeout_graceful_shutdown = 1
        client = await asks(proxy, "s", before=long)
        await client.read(ENDS[4])
    client.leave()
    async with store_at(settings.store.url) as store:
        found = await recorded(store, "s")
    assert contents(found.said, "user") == [long, "s"]
    assert contents(found.said, "assistant") == ["".join(WORDS[:5])]
    assert found.incomplete == [True]
