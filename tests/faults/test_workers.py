"""Several workers, one memory: every request sees the one before it, whoever served that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import httpx
import pytest

from tests.support.client import client_of
from tests.support.processes import redis as servers
from tests.support.processes.worker import Served, served
from tests.support.store.inside import AUTHORIZATION, Recorded, contents, store_at
from tests.support.store.places import Places
from tests.support.talk.chatting import (
    chatting,
    chatting_with_each,
    history_with,
    memory_of,
    seen_by,
)
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.waiting import PATIENCE

TURNS = 100

WRITERS = 50


@pytest.fixture(
    params=["sqlite", pytest.param("redis", marks=pytest.mark.release), "redis-cluster"]
)
def url(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    return places.of(request.param, tmp_path).url


@pytest.fixture
def program(up: ScriptedUpstream, tmp_path: Path, url: str) -> Iterator[Served]:
    with served(tmp_path / "proxy", up.url, url, memory__window="all") as started:
        started.wait_for_workers(2)
        yield started


def counts(metrics: str, name: str) -> dict[str, float]:
    """Values of a metric by their labels, as they stand in the text."""
    lines = [line for line in metrics.splitlines() if line.startswith(f"{name}{{")]
    pairs = (line.removeprefix(name).rpartition(" ") for line in lines)
    return {labels: float(value) for labels, _, value in pairs}


async def metrics_of(program: Served) -> str:
    """What one worker says, whichever takes the connection."""
    async with client_of(program.url) as client:
        answer = await client.get("/metrics", headers={"connection": "close"})
        assert answer.status_code == 200
        return answer.text


def contiguous(found: Recorded) -> bool:
    """Is every question followed by its own answer?"""
    pairs = list(zip(found.said[::2], found.said[1::2], strict=True))
    right = all(a[0] == "user" and b[1].endswith(f": {a[1]}") for a, b in pairs)
    return right and found.seqs == list(range(1, len(found.said) + 1))


@pytest.mark.slow
async def test_every_request_sees_the_one_before_whichever_worker_served_it(
    up: ScriptedUpstream, program: Served, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with chatting_with_each(program) as chats:
        for n, chat in zip(range(TURNS), cycle(chats)):
            response = await chat.say(f"u{n}")
            assert memory_of(response) == (200, "applied" if n else "empty", None), n
            assert seen_by(up) == [f"u{k}" for k in range(n + 1)]
    shares = program.counted("memory_commits_total")
    assert len(shares) == 2 and min(shares) > TURNS / 20
    recorded = counts(await metrics_of(program), "memory_commits_total")
    assert recorded == {'{outcome="recorded"}': TURNS}
    async with store_at(url) as store:
        found = await history_with(store, TURNS)
    assert contents(found.said, "user") == [f"u{n}" for n in range(TURNS)]
    assert contiguous(found)
    with capsys.disabled():
        print(f"\n{url.partition(':')[0]}: {TURNS} turns over two workers ({shares}), 0 unseen")


@pytest.mark.slow
async def test_parallel_writers_of_one_session_do_not_mix(
    up: ScriptedUpstream, program: Served, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def write(n: int) -> httpx.Response:
        async with chatting(program.url) as chat:
            return await chat.say(f"u{n}", connection="close")

    async with asyncio.timeout(PATIENCE):
        answers = await asyncio.gather(*(write(n) for n in range(WRITERS)))
    assert {memory_of(answer)[0] for answer in answers} == {200}
    async with store_at(url) as store:
        found = await history_with(store, WRITERS)
    assert len(found.exchanges) == WRITERS and contiguous(found)
    assert sorted(contents(found.said, "user")) == sorted(f"u{n}" for n in range(WRITERS))
    outcomes = counts(await metrics_of(program), "memory_commits_total")
    assert sum(outcomes.values()) == WRITERS
    with capsys.disabled():
        print(f"\n{url.partition(':')[0]}: {WRITERS} writers at once, all whole: {outcomes}")


async def test_metrics_are_the_sum_over_the_workers(up: ScriptedUpstream, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/memory.db"
    with served(tmp_path / "proxy", up.url, store) as program:
        async with chatting_with_each(program) as chats:
            for n, chat in enumerate(chats * 5):
                await chat.say("hello", f"s{n}")
            relayed = await chat.client.get("/v1/models", headers={"authorization": AUTHORIZATION})
            assert relayed.status_code == 200
        texts = [await metrics_of(program) for _ in range(6)]
    for text in texts:
        answered = counts(text, "memory_requests_total")
        said = [v for labels, v in answered.items() if 'route="chat"' in labels]
        relays = [v for labels, v in answered.items() if 'route="relay"' in labels]
        assert (sum(said), sum(relays)) == (40, 1)


async def test_what_one_worker_spooled_the_other_sees(
    up: ScriptedUpstream, server: servers.Server, tmp_path: Path
) -> None:
    turns = 40
    with served(tmp_path / "proxy", up.url, server.url) as program:
        async with chatting_with_each(program) as chats:
            await chats[0].say("u0")
            server.ask("CONFIG", "SET", "maxmemory", "1")
            for n, chat in zip(range(1, turns), cycle(chats)):
                response = await chat.say(f"u{n}")
                assert memory_of(response) == (200, "applied", "spooled" if n > 1 else None)
                assert seen_by(up) == [f"u{k}" for k in range(n + 1)]
            server.ask("CONFIG", "SET", "maxmemory", "0")
            async with store_at(server.url) as store:
                found = await history_with(store, turns)
        assert min(program.counted("memory_commits_total")) > 1
    assert contents(found.said, "user") == [f"u{n}" for n in range(turns)]
    assert contiguous(found)
