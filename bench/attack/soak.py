"""Twenty busy minutes: is what a worker holds flat in the last ten?

Clients of all kinds at once: some send only what is new, some resend everything, some run tool
loops, some leave in mid-stream, some get errors of the upstream, one imports and erases.  Each has
sessions that begin anew after a while, as people do.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import processes
from bench.attack.sending import Json, assistant, chat, head, user
from bench.upstream import ANSWER
from bench.wire import Answer, asked

KEY = "sk-soak"
SAMPLE_EVERY = 5.0
PAUSE = 0.1
"""Seconds between two requests of a client: what is done behind an answer must keep up, or what is
measured is the length of its queue."""

TURNS = 20
"""Of a session; then a new one begins."""


@dataclass(frozen=True, slots=True)
class Sample:
    """At ``seconds``: bytes resident, descriptors, threads, tasks of the loop, requests so far."""

    seconds: float
    rss: int
    descriptors: int
    threads: int
    tasks: int
    requests: int


class Soak:
    """Keeps a proxy busy for ``seconds``; ``samples`` is what it held meanwhile."""

    def __init__(self, proxy: processes.Process, seconds: float) -> None:
        self._proxy, self._seconds = proxy, seconds
        self._requests = 0
        self.statuses: dict[str, int] = {}
        self.samples: list[Sample] = []

    async def run(self, step: Callable[[float], None]) -> None:
        clients = [
            *(self._delta(n) for n in range(3)),
            *(self._resending(n) for n in range(3)),
            *(self._looping(n) for n in range(2)),
            *(self._leaving(n) for n in range(2)),
            self._failing(),
            self._importing(),
        ]
        tasks = [asyncio.create_task(client) for client in clients]
        began = time.monotonic()
        while (now := time.monotonic() - began) < self._seconds:
            self.samples.append(await self._sample(now))
            step(now)
            await asyncio.sleep(SAMPLE_EVERY)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # The clients

    async def _delta(self, n: int) -> None:
        for session in itertools.count():
            for turn in range(TURNS):
                said = user(f"I have plan {turn} for my garden in town {session}.")
                await self._chat(f"delta-{n}-{session}", [said], f"person-{n}-{session % 50}")

    async def _resending(self, n: int) -> None:
        for session in itertools.count():
            log: list[Json] = []
            for turn in range(TURNS):
                log.append(user(f"question {turn} of {session}"))
                if await self._chat(f"resend-{n}-{session}", log) == 200:
                    log.append(assistant(ANSWER))

    async def _looping(self, n: int) -> None:
        for session in itertools.count():
            log: list[Json] = [user(f"look into {session}")]
            for step in range(TURNS):
                id = f"call_{step}"
                function = {"name": "look", "arguments": json.dumps({"n": step})}
                call = {"id": id, "type": "function", "function": function}
                log.append({"role": "assistant", "content": None, "tool_calls": [call]})
                log.append({"role": "tool", "tool_call_id": id, "content": f"seen {step}"})
                await self._chat(f"loop-{n}-{session}", log)

    async def _leaving(self, n: int) -> None:
        """Asks for a stream and leaves before its end."""
        for session in itertools.count():
            with suppress(OSError, TimeoutError):
                request = self._request(
                    f"leave-{n}-{session}", [user("tell me")], None, b"x-bench-answer: stream\r\n"
                )
                async with self._connected() as (reader, writer):
                    writer.write(request)
                    await reader.read(200 + session % 1500)
            self._requests += 1
            await asyncio.sleep(PAUSE)

    async def _failing(self) -> None:
        for session in itertools.count():
            await self._chat(
                f"fail-{session // 5}", [user("x")], None, b"x-bench-answer: failure\r\n"
            )
            await asyncio.sleep(0.1)

    async def _importing(self) -> None:
        for n in itertools.count():
            talk = [user(f"I live in town {n}."), assistant("Noted.")] * 10
            body = json.dumps({"messages": talk, "user": f"imported-{n}"}).encode()
            await self._ask("POST", f"/memory/v1/sessions/imported-{n}/messages", body)
            if n >= 20:
                await self._ask("DELETE", f"/memory/v1/users/imported-{n - 20}")
            await asyncio.sleep(0.5)

    # Asking

    async def _chat(
        self, session: str, messages: list[Json], person: str | None = None, more: bytes = b""
    ) -> int:
        answer = await self._exchanged(self._request(session, messages, person, more))
        return answer.status

    def _request(
        self, session: str, messages: list[Json], person: str | None, more: bytes
    ) -> bytes:
        more += b"x-user-id: %b\r\n" % person.encode() if person else b""
        return chat(KEY, session, messages, more)

    async def _ask(self, method: str, path: str, body: bytes = b"") -> None:
        await self._exchanged(head(KEY, method, path, len(body)) + body)

    async def _exchanged(self, request: bytes) -> Answer:
        answer = Answer()
        with suppress(OSError, TimeoutError):
            answer = await asked(self._proxy.port, request)
        self._requests += 1
        status = answer.headers.get(b"x-memory-status", b"").decode()
        name = f"{answer.status} {status}".strip()
        self.statuses[name] = self.statuses.get(name, 0) + 1
        await asyncio.sleep(PAUSE)
        return answer

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection that is closed on leaving, also in the middle of an answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._proxy.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    # Watching

    async def _sample(self, now: float) -> Sample:
        process = psutil.Process(self._proxy.pid)
        return Sample(
            now,
            self._proxy.rss(),
            process.num_fds(),
            process.num_threads(),
            await self._tasks(),
            self._requests,
        )

    async def _tasks(self) -> int:
        """The tasks of the event loop, as /metrics tells them."""
        async with self._connected() as (reader, writer):
            writer.write(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            text = await reader.read()
        found = re.search(rb"^memory_tasks (\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0


def run(kind: str, folder: Path, seconds: float, step: Callable[[float], None]) -> Soak:
    """A proxy on a store of this kind, kept busy."""
    with (
        processes.upstream(folder, "bench.attack.upstream") as upstream,
        processes.store(kind, folder) as store,
        processes.proxy(folder, upstream.url, store, tenancy="key") as proxy,
    ):
        soak = Soak(proxy, seconds)
        asyncio.run(soak.run(step))
    return soak


def report(soak: Soak) -> str:
    """A line for each twentieth of the time, and what the second half grew by."""
    samples = soak.samples
    lines = [
        "| minute | MB resident | descriptors | threads | tasks | requests |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [_line(sample) for sample in samples[:: max(1, len(samples) // 20)]]
    half = samples[len(samples) // 2 :]
    grown = _slope(half) * (half[-1].seconds - half[0].seconds)
    answers = ", ".join(f"{n} x {what}" for what, n in sorted(soak.statuses.items()))
    lines += ["", f"Grown in the second half: {grown / 1e6:+.1f} MB (least squares)."]
    return "\n".join([*lines, f"Answers: {answers}."])


def _line(sample: Sample) -> str:
    return (
        f"| {sample.seconds / 60:.1f} | {sample.rss / 1e6:.1f} | {sample.descriptors} "
        f"| {sample.threads} | {sample.tasks} | {sample.requests} |"
    )


def _slope(samples: list[Sample]) -> float:
    """Bytes a second."""
    n = len(samples)
    mean_x = sum(sample.seconds for sample in samples) / n
    mean_y = sum(sample.rss for sample in samples) / n
    over = sum((s.seconds - mean_x) * (s.rss - mean_y) for s in samples)
    return over / (sum((s.seconds - mean_x) ** 2 for s in samples) or 1.0)
