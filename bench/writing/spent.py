"""Requests to models and tokens that each feature takes, over a conversation.

One feature after the other, each in a profile, a session and with a user of its own.  After each
turn there is a rest, as people need one: a writer that is behind would read more at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import aiohttp
import msgspec

from bench import processes
from bench.cost.fill import Step
from bench.cost.suite import opened
from bench.processes import Process
from bench.writing.added import PAUSE
from bench.writing.chats import Chat, answer_id, chatting, is_degraded
from bench.writing.memory import Memory, Used, memory_of
from bench.writing.profiles import ALL, Profile, configured
from bench.writing.upstream import Tally
from bench.writing.words import Speaker
from proxy.stores.open import Backend

PATIENCE = 120.0
"""Seconds that the queue may take to empty: twice as long as a session must be quiet."""

FEEDBACK = 4, 3
"""Answers are judged every so many turns, beginning with which: bad, with a comment, then good."""
COMMENT = "That was too long for me."


class Row(NamedTuple):
    """A feature in the table, whose usage is counted under ``feature`` ("" is none)."""

    name: str
    profile: Profile
    feature: str = ""


ROWS = (
    Row("nothing written", Profile("plain", {})),
    Row("summary, summary_buffer", Profile("buffer", {"summary": ""}), "summary"),
    Row("summary, summary", Profile("running", {"summary": 'mode = "summary"'}), "summary"),
    Row("facts", Profile("facts", {"facts": ""}), "facts"),
    Row("profile", Profile("profile", {"profile": ""}), "profile"),
    Row("episodes, by_model", Profile("episodes", {"episodes": ALL["episodes"]}), "episodes"),
    Row(
        "instructions",
        Profile("instructions", {"instructions": "auto_apply = true"}),
        "instructions",
    ),
    Row("tools", Profile("tools", {}, tools=True)),
)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a feature took over ``turns``: of the writers, and in the chats' own requests."""

    row: Row
    turns: int
    used: Used
    chats: Tally


async def measure(folder: Path, url: str, turns: int, step: Step) -> list[Spent]:
    """Raises RuntimeError where something is not as it should be."""
    async with _counted(folder, url) as counted:
        return [await counted.spent(row, turns, step) for row in ROWS]


@asynccontextmanager
async def _counted(folder: Path, url: str) -> AsyncIterator[_Counted]:
    with ExitStack() as running:
        module = "bench.writing.upstream"
        upstream = running.enter_context(processes.upstream(folder, module, "--count"))
        config = configured(folder, upstream.url, *(row.profile for row in ROWS))
        proxy = running.enter_context(processes.proxy(folder, upstream.url, url, config))
        async with (
            memory_of(proxy.url) as memory,
            aiohttp.ClientSession(upstream.url) as http,
            opened(url) as store,
        ):
            yield _Counted(proxy, memory, http, store)


class _Counted:
    """A proxy, and all that says what is spent."""

    def __init__(
        self, proxy: Process, memory: Memory, upstream: aiohttp.ClientSession, store: Backend
    ) -> None:
        self._proxy, self._memory = proxy, memory
        self._upstream, self._store = upstream, store

    async def spent(self, row: Row, turns: int, step: Step) -> Spent:
        name = row.profile.name
        used, tally = await self._memory.used(row.feature), await self._tally()
        async with chatting(self._proxy, name, name, f"spent-{name}") as chat:
            await self._talk(chat, turns, step, judging=row.feature == "instructions")
        await self._empty()
        now = await self._memory.used(row.feature), await self._tally()
        return Spent(row, turns, now[0].since(used), since(now[1], tally))

    async def _talk(self, chat: Chat, turns: int, step: Step, *, judging: bool) -> None:
        speaker, (every, first) = Speaker(seed=4), FEEDBACK
        for number in range(turns):
            answer = await chat.say(speaker.turn(number))
            if is_degraded(answer):
                raise RuntimeError("an answer went without memory")
            if judging and number % every == first:
                good = number % (2 * every) != first
                said = (1, "") if good else (-1, COMMENT)
                await self._memory.judge(chat.session, answer_id(answer), *said)
                await self._empty()
            step(1)
            await asyncio.sleep(PAUSE)

    async def _empty(self) -> None:
        """Until there is no work any more, not even work that waits for quiet."""
        deadline = time.monotonic() + PATIENCE
        while await self._store.waiting(time.time() + PATIENCE, 1):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the queue is not empty after {PATIENCE:.0f} s")
            await asyncio.sleep(PAUSE)

    async def _tally(self) -> Tally:
        async with self._upstream.get("/v1/tally") as answer:
            return msgspec.json.decode(await answer.read(), type=Tally)


def since(now: Tally, before: Tally) -> Tally:
    """What came between two tallies."""
    then = msgspec.structs.asdict(before)
    blocks = dict(_differences(now.blocks, before.blocks))
    counts = {
        name: value - then[name]
        for name, value in msgspec.structs.asdict(now).items()
        if name != "blocks"
    }
    return Tally(**counts, blocks=blocks)


def _differences(now: dict[str, int], before: dict[str, int]) -> Iterator[tuple[str, int]]:
    for kind, tokens in now.items():
        if more := tokens - before.get(kind, 0):
            yield kind, more
