"""Summaries where processes are killed and race: every turn is told once or shown, never both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy.background import runner
from proxy.background.runner import LEASE
from proxy.memory.model import SessionKey, Work
from proxy.memory.store import Store
from tests.support.processes.worker import Served, served
from tests.support.store.inside import TENANT, store_at
from tests.support.store.places import Places
from tests.support.upstream.scribing import EVER, FEW, Scribe, Storyteller, markers, nothing_waits
from tests.support.upstream.scripted import SILENT, ScriptedUpstream
from tests.support.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.slow]

TURNS = 7
LATER = LEASE + runner.OVERDUE_SECONDS + 1
"""Seconds: what a killed process held is another's by then, and none that cannot do it waits."""

SESSIONS, LENGTH = 5, 8
ROUNDS = 6
"""How often they race at most until all have won something: a starved process may come too late."""


@pytest.fixture(params=["sqlite", "redis"])
def url(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    """A store that outlives programs."""
    return places.of(request.param, tmp_path).url


async def the_work(store: Store) -> Work:
    """The only piece there is."""
    (work,) = await store.waiting(EVER, 10)
    return work


async def summary_of(store: Store, session: str = "s") -> str | None:
    found = await store.session(SessionKey(TENANT, session))
    assert found is not None
    return found.summary.text if found.summary else None


async def killed_as_it_summarises(program: Served, up: ScriptedUpstream) -> Storyteller:
    """A session of some turns whose program died while it waited for the first summary."""
    scribe, story = Scribe(up, lambda text: SILENT), Storyteller(up, [program.url])
    prompt = await story.tells(TURNS)
    assert prompt.told == []

    async def is_asked() -> bool:
        return bool(scribe.asked)

    await eventually(is_asked)
    (request,) = scribe.asked
    assert markers(scribe.texts[0])[0] == "0"
    program.kill()
    program.bury()
    await request.gone.wait()
    return story


async def test_a_summary_that_a_kill_cut_off_is_made_after_the_restart(
    up: ScriptedUpstream, tmp_path: Path, url: str
) -> None:
    """With a key of its own the writer needs nobody's request."""
    own = {**FEW, "memory__summary__api_key": "sk-writer"}
    with served(tmp_path / "proxy", up.url, url, workers=1, **own) as program:
        story = await killed_as_it_summarises(program, up)
        async with store_at(url) as store:
            assert 0 < (await the_work(store)).due - time.time() <= LEASE
            scribe = Scribe(up)
            program.start(ahead=LATER)
            await nothing_waits(store)
            told = markers(await summary_of(store) or "")
        assert told == scribe.read == [str(n) for n in range(TURNS - 2)]
        assert [request.header("authorization") for request in scribe.asked] == ["Bearer sk-writer"]
        story.urls = [program.url]
        assert (await story.tells()).told == told
        assert program.errors() == ""


async def test_where_only_the_tenants_key_will_do_the_work_waits_for_their_next_request(
    up: ScriptedUpstream, tmp_path: Path, url: str
) -> None:
    with served(tmp_path / "proxy", up.url, url, workers=1, **FEW) as program:
        story = await killed_as_it_summarises(program, up)
        scribe = Scribe(up)
        program.start(ahead=LATER)
        async with store_at(url) as store:

            async def put_off() -> bool:
                return (await the_work(store)).due > time.time() + LATER

            await eventually(put_off)
            assert (scribe.asked, await summary_of(store)) == ([], None)
            story.urls = [program.url]
            assert (await story.tells()).told == []
            await nothing_waits(store)
        told = scribe.read
        assert told == [str(n) for n in range(TURNS - 1)]
        assert (await story.tells()).told == told
        assert program.errors() == ""


async def race(
    up: ScriptedUpstream,
    urls: list[str],
    store: Store,
    jobs: Callable[[], list[int]],
    left: int = 2,
) -> tuple[Scribe, list[int]]:
    """Many sessions at once, each served by all, until all have done ``jobs``; those of the last
    time, and how many jobs it were."""
    for number in range(ROUNDS):
        scribe = await race_once(up, urls, store, number, left)
        done = jobs()
        if min(done) > 0:
            return scribe, done
    pytest.fail(f"one of them did all the work: {done}")


async def race_once(
    up: ScriptedUpstream, urls: list[str], store: Store, number: int, left: int
) -> Scribe:
    """Afterwards each turn was read exactly once, but for the last ones: at most ``left`` of each
    session were not."""
    scribe = Scribe(up)
    numbers = range(number * SESSIONS, (number + 1) * SESSIONS)
    stories = [Storyteller(up, urls, f"s{n}", first=1000 * n) for n in numbers]
    for _ in range(LENGTH):
        await _together(stories)
    await nothing_waits(store)
    for story in stories:
        mine = [n for n in scribe.read if int(n) // 1000 == story.first // 1000]
        assert mine == markers(await summary_of(store, story.session) or "")
        assert mine == [str(story.first + n) for n in range(len(mine))]
        assert LENGTH - left <= len(mine) <= LENGTH - 2
    await _together(stories)
    return scribe


async def _together(stories: list[Storyteller]) -> None:
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(story.tells() for story in stories))


def jobs_of(program: Served) -> list[int]:
    """Of each worker."""
    return program.counted("memory_background_jobs_total")


@pytest.fixture(
    params=["sqlite", pytest.param("redis", marks=pytest.mark.release), "redis-cluster"]
)
def shared(request: pytest.FixtureRequest, places: Places, tmp_path: Path) -> str:
    """A store that several processes use at once."""
    return places.of(request.param, tmp_path).url


async def test_of_two_workers_one_summarises_each_turn(
    up: ScriptedUpstream, tmp_path: Path, shared: str, capsys: pytest.CaptureFixture[str]
) -> None:
    # In a Cluster the last turn's work may be looked at an instant before the turn is there.
    left = 3 if "cluster" in shared else 2
    with served(tmp_path / "proxy", up.url, shared, 2, **FEW) as program:
        program.wait_for_workers(2)
        async with store_at(shared) as store:
            scribe, jobs = await race(up, [program.url], store, lambda: jobs_of(program), left)
        assert len(jobs) == 2
        assert program.errors() == ""
    with capsys.disabled():
        print(f"\n{shared.partition(':')[0]}: {story_of(scribe)} by workers with {jobs} jobs")


async def test_of_two_hosts_with_one_redis_one_summarises_each_turn(
    up: ScriptedUpstream, places: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as started:
        redis = places.of("redis", tmp_path)
        hosts = [
            started.enter_context(served(tmp_path / name, up.url, redis.url, 2, **FEW))
            for name in ("one", "other")
        ]
        async with store_at(redis.url) as store:
            scribe, jobs = await race(
                up,
                [host.url for host in hosts],
                store,
                lambda: [sum(jobs_of(host)) for host in hosts],
            )
        assert [host.errors() for host in hosts] == ["", ""]
    with capsys.disabled():
        print(f"\ntwo hosts: {story_of(scribe)} by hosts with {jobs} jobs")


def story_of(scribe: Scribe) -> str:
    return f"{len(scribe.read)} turns told once in {len(scribe.asked)} summaries"
