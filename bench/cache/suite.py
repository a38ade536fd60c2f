"""All rows, one after another, through one proxy; each has a cache, a person and sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench import processes
from bench.cache.rules import (
    FREE,
    PAID,
    Anthropic,
    Automatic,
    Breakpoints,
    Cache,
    Rates,
    Used,
)
from bench.cache.talk import PATHS, Api, Client, Words, words_of
from bench.cache.upstream import ROW, TURN, Simulated
from bench.processes import Process
from bench.recall.counting import counter
from bench.recall.datasets.table import load

PAUSE = 0.1
"""Seconds after each turn with memory, in which what was said is indexed."""

DATA = Path(__file__).parents[1] / "data" / "conversations.jsonl"

MARKED = "marked"
CONFIG = f"[profiles.{MARKED}]\ncache_marks = true\n"

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """``past`` turns of another session, which recall may find, then ``turns`` that count."""

    turns: int = 60
    past: int = 20


QUICK = Plan(turns=20, past=5)


class Provider(NamedTuple):
    name: str
    cache: Callable[[], Cache]
    rates: Rates


CLAUDE = Provider("Anthropic: up to marks", Anthropic, PAID)
NEWER = Provider("OpenAI from GPT-5.6 on: at breakpoints", Breakpoints, PAID)
OLDER = Provider("OpenAI before: by itself", Automatic, FREE)


class Row(NamedTuple):
    """``profile`` is None without memory, "" for the default one."""

    provider: Provider
    name: str
    client: Client
    profile: str | None = None

    @property
    def id(self) -> str:
        return f"{self.provider.name}, {self.name}"


OFF, ON, WITH_MARKS = "memory off, all resent", "memory on", "memory on, with marks"


def _rows(provider: Provider, api: Api, model: str) -> Sequence[Row]:
    whole, newest = (Client(api, model, whole=whole) for whole in (True, False))
    return (
        Row(provider, OFF, whole),
        Row(provider, ON, newest, ""),
        Row(provider, WITH_MARKS, newest, MARKED),
    )


ROWS = (
    Row(
        CLAUDE,
        f"{OFF}, the newest message marked",
        Client("messages", "claude-sonnet-5", whole=True, marks=True),
    ),
    *_rows(CLAUDE, "messages", "claude-sonnet-5"),
    *_rows(NEWER, "chat", "gpt-5.6"),
    *_rows(OLDER, "chat", "gpt-5")[:-1],  # which takes no marks
)


@dataclass(slots=True)
class Result:
    """Of a row.  ``recalled``: turns in which recall found something."""

    row: Row
    used: list[Used] = field(default_factory=list)
    recalled: int = 0

    @property
    def total(self) -> Used:
        return reduce(add, self.used, Used())

    @property
    def billed(self) -> float:
        return self.row.provider.rates.billed(self.total)


async def measure(plan: Plan, folder: Path, step: Step) -> list[Result]:
    """Raises RuntimeError for an answer that is none."""
    people = [person for person in load(DATA).people if person.id.startswith("en-")]
    whole = words_of(people, plan.past + plan.turns)
    past, words = whole.part(0, plan.past), whole.part(plan.past, None)
    config = folder / "proxy.toml"
    config.write_text(CONFIG, encoding="utf-8")
    caches = {row.id: row.provider.cache() for row in ROWS}
    upstream = Simulated(caches, whole.answers, counter())
    async with upstream.running(), aiohttp.ClientSession() as client:
        store = f"sqlite:///{folder}/memory.db"
        with processes.proxy(folder, upstream.url, store, config) as proxy:
            bench = _Bench(client, proxy, upstream, step)
            return [await bench.result(row, words, past) for row in ROWS]


class _Bench:
    def __init__(
        self, client: aiohttp.ClientSession, proxy: Process, upstream: Simulated, step: Step
    ) -> None:
        self._client, self._proxy, self._upstream = client, proxy, upstream
        self._step = step

    async def result(self, row: Row, words: Words, past: Words) -> Result:
        result = Result(row)
        if row.profile is not None:
            for turn in range(len(past.said)):
                await self._say(row, "past", past, turn, 0)
        before = len(self._upstream.used[row.id])
        for turn in range(len(words.said)):
            result.recalled += await self._say(row, "now", words, turn, len(past.said))
        result.used = self._upstream.used[row.id][before:]
        return result

    async def _say(self, row: Row, session: str, words: Words, turn: int, before: int) -> bool:
        """One exchange, ``before`` which there were so many: was anything recalled?"""
        url = f"{self._proxy.url}{PATHS[row.client.api]}"
        headers = {ROW: row.id, TURN: str(before + turn), "anthropic-version": "2023-06-01"}
        if row.profile is not None:
            person = row.id.replace(" ", "-")
            headers |= {"X-User-Id": person, "X-Session-Id": f"{person}-{session}"}
            headers |= {"X-Memory-Profile": row.profile} if row.profile else {}
        async with self._client.post(
            url, json=row.client.body(words, turn), headers=headers
        ) as answer:
            if answer.status != 200:
                raise RuntimeError(f"an answer had status {answer.status}: {await answer.text()}")
            await answer.read()
        if row.profile is not None:
            await asyncio.sleep(PAUSE)
        self._step()
        return answer.headers.get("X-Memory-Recalled", "0") != "0"


def steps(plan: Plan) -> int:
    """How many exchanges there are."""
    return sum(plan.turns + plan.past * (row.profile is not None) for row in ROWS)
