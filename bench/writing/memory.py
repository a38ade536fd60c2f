"""The memory API of a running proxy, as far as it is needed here."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from bench.writing.plan import FACTS
from bench.writing.player import ADVICE
from bench.writing.words import Speaker

_METRIC = re.compile(r"^(\w+)(?:\{.*\})? ([\d.e+-]+)$", re.MULTILINE)


class Used(NamedTuple):
    """Requests to a model, and their tokens."""

    calls: int = 0
    failed: int = 0
    input: int = 0
    output: int = 0

    def since(self, before: Used) -> Used:
        return Used(*(now - then for now, then in zip(self, before, strict=True)))


class Memory:
    """All methods raise RuntimeError for an answer that is none."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def know(self, name: str, speaker: Speaker) -> None:
        """Facts and a profile of the user of this name, and instructions of the application."""
        tellings = [speaker.telling() for _ in range(FACTS)]
        for telling in tellings:
            await self._ask("POST", f"/users/{name}/memories", {"text": telling.noted})
        document = {each.relation: f"{each.name}, {each.verb} {each.thing}" for each in tellings}
        await self._ask("PATCH", f"/users/{name}/profile", document)
        await self._ask("PUT", f"/instructions/{name}", {"text": " ".join(ADVICE)})

    async def judge(self, session: str, message: str, score: int, comment: str = "") -> None:
        path = f"/sessions/{session}/messages/{message}/feedback"
        await self._ask("POST", path, {"score": score, "comment": comment})

    async def used(self, feature: str) -> Used:
        """By a feature so far, today and the days before."""
        found = await self._ask("GET", "/usage")
        used = [
            Used(each["calls"], each["failed"], each["input_tokens"], each["output_tokens"])
            for each in found["data"]
            if each["feature"] == feature
        ]
        return Used(*map(sum, zip(*used, strict=True))) if used else Used()

    async def metric(self, name: str) -> float:
        """A counter so far, the sum over its labels."""
        async with self._http.get("/metrics") as answer:
            found = _METRIC.findall(await answer.text())
        return sum(float(value) for metric, value in found if metric == name)

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        async with self._http.request(method, f"/memory/v1{path}", json=body) as answer:
            if answer.status >= 300:
                told = await answer.text()
                raise RuntimeError(f"{method} {path} had status {answer.status}: {told[:200]}")
            return await answer.json()


@asynccontextmanager
async def memory_of(url: str) -> AsyncIterator[Memory]:
    async with aiohttp.ClientSession(url) as http:
        yield Memory(http)
