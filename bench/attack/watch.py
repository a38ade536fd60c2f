"""What is watched while an attack runs: the victim, the worker's pulse, its memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from bench.attack.sending import chat, head, user
from bench.processes import Process
from bench.wire import asked

PULSE = 0.02
"""Seconds between two looks at /healthz."""

CHAT_EVERY = 0.2
VICTIM = "sk-victim"
HEALTHZ = head("", "GET", "/healthz", 0)
MEMORY_LIMIT = 3_000_000_000
"""Bytes at which a process that is being measured is killed."""


@dataclass(slots=True)
class Seen:
    """Seconds, bytes and counts of one attack."""

    chats: int = 0
    degraded: int = 0
    failed: int = 0
    slowest_chat: float = 0.0
    stall: float = 0.0
    rss: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


class Watch:
    """Watches a proxy until ``end``; what was seen is in ``seen``."""

    def __init__(self, proxy: Process) -> None:
        self.seen = Seen(rss=proxy.rss())
        self._proxy = proxy
        self._over = asyncio.Event()

    async def __aenter__(self) -> Watch:
        await self._ready()
        self.seen.rss = self._proxy.rss()
        watchers = (self._chat(), self._pulse(), self._memory())
        self._tasks = [asyncio.create_task(watcher) for watcher in watchers]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await asyncio.gather(*self._tasks)

    async def _ready(self) -> None:
        """Until the proxy has started: what it listens on is open before."""
        await asked(self._proxy.port, HEALTHZ)
        await self._one("victim-0", 0)
        self.seen = Seen()

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)

    async def _chat(self) -> None:
        """Short chats of the victim's, each of a session that has a few turns."""
        number = 0
        while not self._over.is_set():
            number += 1
            began = time.perf_counter()
            try:
                await self._one(f"victim-{number % 5}", number)
            except (OSError, TimeoutError):
                self.seen.failed += 1
            self.seen.slowest_chat = max(self.seen.slowest_chat, time.perf_counter() - began)
            await self._pause(CHAT_EVERY)

    async def _one(self, session: str, number: int) -> None:
        said = user(f"What is said about plan {number}?")
        answer = await asked(self._proxy.port, chat(VICTIM, session, [said]))
        self._count(answer.status, answer.headers)

    def _count(self, status: int, headers: dict[bytes, bytes]) -> None:
        seen = self.seen
        seen.chats += 1
        seen.failed += status != 200
        reason = headers.get(b"x-memory-reason", b"").decode()
        seen.degraded += headers.get(b"x-memory-status") == b"degraded" or reason == "spooled"
        if reason:
            seen.reasons[reason] = seen.reasons.get(reason, 0) + 1

    async def _pulse(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            try:
                await asked(self._proxy.port, HEALTHZ)
            except (OSError, TimeoutError):
                self.seen.failed += 1
            self.seen.stall = max(self.seen.stall, time.perf_counter() - began)
            await self._pause(PULSE)

    async def _memory(self) -> None:
        while not self._over.is_set():
            with suppress(psutil.Error):
                now = self._proxy.rss()
                self.seen.rss = max(self.seen.rss, now)
                if now > MEMORY_LIMIT:
                    psutil.Process(self._proxy.pid).kill()
            await self._pause(0.05)
