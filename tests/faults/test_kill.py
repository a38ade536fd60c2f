"""SIGKILL for all workers in the middle of replies: whoever saw the finish finds it recorded."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proxy.memory.store import Store
from tests.support.processes.redis import Server
from tests.support.processes.worker import Served, served
from tests.support.store.inside import AUTHORIZATION, recorded, store_at
from tests.support.talk.chatting import asked, chatting, seen_by
from tests.support.upstream.answers import Piece, Script, chat_stream, sse
from tests.support.upstream.connection import Request
from tests.support.upstream.scripted import ScriptedUpstream
from tests.support.upstream.wireclient import WireClient
from tests.support.waiting import PATIENCE, eventually

TOGETHER = 50
"""Streams at the moment of each kill."""
WORDS = [f"w{number} " for number in range(30)]
TEXT = "".join(WORDS)
EVENTS = chat_stream(WORDS, include_usage=True)
STREAM = b"".join(EVENTS)
FINISH = STREAM.index(b"\n", STREAM.index(b'"finish_reason": "stop"')) + 1
"""So many bytes tell a client that the answer is complete."""


@dataclass
class Toll:
    """Sessions by what their clients saw before the end."""

    finished: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    kills: int = 0

    def __str__(self) -> str:
        runs = len(self.finished) + len(self.cut)
        return f"{runs} replies, {self.kills} kills, {len(self.finished)} finish lines seen"


def script(rng: random.Random, never: asyncio.Event) -> Script:
    """Every other stream stops at a byte of its own, often just where it would be finished."""
    if rng.random() < 0.5:
        return sse(EVENTS)
    at = rng.choice([rng.randrange(1, len(STREAM)), FINISH - 1, FINISH, rng.randrange(1, FINISH)])
    held: list[Piece] = [STREAM[:at], never, STREAM[at:]]
    return sse(held)


async def stream(program: Served, session: str, trigger: int | None, toll: Toll) -> None:
    """Read a reply to wherever it ends; having read ``trigger`` bytes, kill."""
    async with WireClient(program.url) as client:
        try:
            headers = {"x_session_id": session, "authorization": AUTHORIZATION}
            await client.ask(asked(session, stream=True), **headers)
            if trigger is not None:
                await client.read(trigger)
                program.kill()
            await client.read_all()
        except ConnectionError:
            pass
        seen = client.body.startswith(STREAM[:FINISH])
        (toll.finished if seen else toll.cut).append(session)
        assert STREAM.startswith(client.body), (bytes(client.body[:200]), program.errors())


async def kill_amid(program: Served, rng: random.Random, toll: Toll) -> list[str]:
    """Streams, of which one pulls the trigger; the names of their sessions."""
    sessions = [f"s{toll.kills}-{n}" for n in range(TOGETHER)]
    toll.kills += 1
    late = rng.random() < 0.5
    trigger = rng.randrange(FINISH - 300, len(STREAM)) if late else rng.randrange(1, FINISH)
    async with asyncio.timeout(PATIENCE):
        runs = [stream(program, session, None, toll) for session in sessions[1:]]
        await asyncio.gather(*runs, stream(program, sessions[0], trigger, toll))
    await asyncio.to_thread(program.bury)
    return sessions


async def check(store: Store, session: str, *, finished: bool) -> None:
    found = await recorded(store, session)
    whole = [("user", session), ("assistant", TEXT)]
    assert found.said == whole or (not finished and found.said == [])
    assert found.seqs == list(range(1, len(found.said) + 1))
    assert found.incomplete in ([False], [])


async def all_there(store: Store, toll: Toll) -> None:
    for session in toll.finished:
        await check(store, session, finished=True)
    for session in toll.cut:
        await check(store, session, finished=False)


@asynccontextmanager
async def ill_fated(up: ScriptedUpstream, seed: int) -> AsyncIterator[random.Random]:
    """An upstream whose streams may stop; the dice that say where."""
    rng, never = random.Random(seed), asyncio.Event()

    def answer(request: Request) -> Script:
        # The stream that pulls the trigger is not held back.
        trigger = request.messages[-1]["content"].endswith("-0")
        return sse(EVENTS) if trigger else script(rng, never)

    up.always(answer)
    yield rng


async def remembered(up: ScriptedUpstream, program: Served, toll: Toll) -> None:
    """The restarted program itself shows some of the replies to the upstream."""
    up.always(None)
    async with chatting(program.url) as chat:
        for session in toll.finished[-3:]:
            async with asyncio.timeout(PATIENCE):
                await chat.say("and then?", session)
            assert seen_by(up) == [session, "and then?"]
            assert up.requests[-1].messages[1]["content"] == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("kills", [pytest.param(2, id="100-replies")])
async def test_what_a_client_saw_finished_survives_a_kill_on_sqlite(
    up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str], kills: int
) -> None:
    url, toll = f"sqlite:///{tmp_path}/memory.db", Toll()
    async with ill_fated(up, 1) as rng:
        with served(tmp_path / "proxy", up.url, url) as program:
            for _ in range(kills):
                await kill_amid(program, rng, toll)
                await asyncio.to_thread(program.start)
            async with store_at(url) as store:
                await eventually_replayed(store, toll)
                await all_there(store, toll)
            await remembered(up, program, toll)
            assert program.errors() == ""
    assert len(toll.finished) > kills and len(toll.cut) > kills
    with capsys.disabled():
        print(f"\nSQLite: {toll}, all of them recorded whole and once")


@pytest.mark.slow
async def test_what_a_client_saw_finished_survives_a_kill_on_redis(
    server: Server, up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toll = Toll()
    async with ill_fated(up, 2) as rng:
        with served(tmp_path / "proxy", up.url, server.url, workers=1) as program:
            for _ in range(2):
                await kill_amid(program, rng, toll)
                await asyncio.to_thread(program.start)
            async with store_at(server.url) as store:
                await eventually_replayed(store, toll)
                await all_there(store, toll)
            await remembered(up, program, toll)
            assert program.errors() == ""
    assert len(toll.finished) > 3 and len(toll.cut) > 3
    with capsys.disabled():
        print(f"\nRedis: {toll}, all of them recorded whole and once")


@pytest.mark.slow
async def test_what_a_client_saw_finished_survives_a_kill_while_the_store_is_down(
    server: Server, up: ScriptedUpstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toll = Toll()
    server.stop()
    async with ill_fated(up, 3) as rng:
        with served(tmp_path / "proxy", up.url, server.url, workers=1) as program:
            for _ in range(2):
                await kill_amid(program, rng, toll)
                if toll.kills == 1:
                    server.start()
                await asyncio.to_thread(program.start)
            async with store_at(server.url) as store:
                await eventually_replayed(store, toll)
                await all_there(store, toll)
            assert program.errors() == ""
    assert len(toll.finished) > 3 and len(toll.cut) > 3
    with capsys.disabled():
        print(f"\nRedis down: {toll}, all of them replayed whole and once")


async def eventually_replayed(store: Store, toll: Toll) -> None:
    """A store that was too busy has got from the spool what it did not take at once."""

    async def replayed() -> bool:
        return all([(await recorded(store, session)).said for session in toll.finished])

    await eventually(replayed)


def test_the_finish_line_is_where_these_tests_think() -> None:
    line = STREAM[:FINISH].splitlines()[-1].removeprefix(b"data: ")
    assert json.loads(line)["choices"][0]["finish_reason"] == "stop"
